/*
 * <stook/range_map.hpp> - stook::range_map<T>: ranges of 64-bit keys to pointers to T
 *
 *      stook::range_map<region> map;
 *      map.store(0x1000, 0x1fff, &code);               // inclusive ranges
 *      region *here = map.load(0x1234);
 *
 *      for (auto [first, last, region] : map.read())   // in order; the guard ends with the loop
 *              print(first, last, *region);
 *
 * It is a tree of <stook/maple.h>, which says what ranges, gaps and entries are. The map does
 * not own its entries. It cannot be copied or moved.
 *
 * Threads: the calls of the map itself take the map's lock, each for itself. A guard keeps out
 * writers for as long as it lives: reader and writer below. A map made with an RCU implementation
 * has readers that take no lock: a reader is then a read section, and load() of the map may only be
 * called inside one. A map with STOOK_MAPLE_EXTERNAL_LOCK takes no lock at all.
 * No call is signal-safe.
 *
 * Link with -lstook-maple -lstook (pkg-config stook-maple).
 */
#ifndef STOOK_RANGE_MAP_HPP
#define STOOK_RANGE_MAP_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stook/error.hpp>
#include <stook/maple.h>
#include <stook/rcu.h>

namespace stook
{

/* A range of a map, as a walk meets it. */
template <class T> struct range {
        std::uint64_t first, last;
        T *entry;
};

/* The ranges of a map between two keys: see range_map<T>::reader. */
template <class T> class range_view
{
public:
        /* An input iterator. In a map that is not RCU's, what it has not met yet may be changed. */
        class iterator
        {
        public:
                using iterator_category = std::input_iterator_tag;
                using value_type = range<T>;
                using difference_type = std::ptrdiff_t;
                using pointer = const range<T> *;
                using reference = const range<T> &;

                iterator() noexcept = default;

                iterator(stook_maple *tree, std::uint64_t first, std::uint64_t last) noexcept
                    : last_(last)
                {
                        cursor_.tree = tree;
                        stook_maple_cursor_set(&cursor_, first, first);
                        ++*this;
                }

                reference operator*() const noexcept
                {
                        return at_;
                }

                pointer operator->() const noexcept
                {
                        return &at_;
                }

                iterator &operator++() noexcept
                {
                        void *entry = stook_maple_cursor_find(&cursor_, last_);

                        at_ = { cursor_.first, cursor_.last, static_cast<T *>(entry) };
                        return *this;
                }

                iterator operator++(int) noexcept
                {
                        iterator before = *this;

                        ++*this;
                        return before;
                }

                /* Of one walk, only the end equals the end. */
                friend bool operator==(const iterator &a, const iterator &b) noexcept
                {
                        return a.at_.entry == b.at_.entry &&
                               (!a.at_.entry || a.at_.first == b.at_.first);
                }

                friend bool operator!=(const iterator &a, const iterator &b) noexcept
                {
                        return !(a == b);
                }

        private:
                stook_maple_cursor cursor_ = STOOK_MAPLE_CURSOR_INIT(nullptr, 0, 0);
                std::uint64_t last_ = 0;
                range<T> at_ = { 0, 0, nullptr };
        };

        range_view(stook_maple *tree, std::uint64_t first, std::uint64_t last) noexcept
            : tree_(tree), first_(first), last_(last)
        {
        }

        iterator begin() const noexcept
        {
                return iterator(tree_, first_, last_);
        }

        iterator end() const noexcept
        {
                return iterator();
        }

private:
        stook_maple *tree_;
        std::uint64_t first_, last_;
};

template <class T> class range_map
{
public:
        using range = stook::range<T>;
        class reader;
        class writer;
        class prepared_store;

        /* An empty map. @flags: STOOK_MAPLE_GAPS for alloc(), STOOK_MAPLE_EXTERNAL_LOCK */
        explicit range_map(unsigned flags = 0)
        {
                detail::check(init(flags & STOOK_MAPLE_RCU ? ~0u : flags), "stook::range_map");
        }

        /*
         * A map with readers that take no lock.
         * @rcu: becomes the RCU implementation of the process by stook_rcu_use(), with its errors
         */
        range_map(unsigned flags, const stook_rcu &rcu) : rcu_(&rcu)
        {
                detail::check(error_of(stook_rcu_use(&rcu)), "stook::range_map");
                detail::check(init(flags | STOOK_MAPLE_RCU), "stook::range_map");
        }

        range_map(const range_map &) = delete;
        range_map &operator=(const range_map &) = delete;

        /* No other thread uses the map, except RCU readers that are still inside. */
        ~range_map()
        {
                clear();
        }

        /* Forgets all ranges; for one thread at a time, as the destructor. */
        void clear() noexcept
        {
                stook_maple_destroy(&tree_);
        }

        stook_maple *handle() noexcept
        {
                return &tree_;
        }

        bool empty() const noexcept
        {
                return stook_maple_empty(&tree_);
        }

        /* The entry whose range has @key in it; nullptr: a gap. */
        T *load(std::uint64_t key) const noexcept
        {
                return static_cast<T *>(stook_maple_load(&tree_, key));
        }

        /* Maps [first, last] to @entry, over whatever is there. nullptr makes a gap. */
        void store(std::uint64_t first, std::uint64_t last, T *entry)
        {
                std::error_code error;

                store(first, last, entry, error);
                detail::check(error, "stook::range_map::store");
        }

        void store(std::uint64_t first, std::uint64_t last, T *entry,
                   std::error_code &error) noexcept
        {
                error = error_of(stook_maple_store(&tree_, first, last, plain(entry)));
        }

        /* Stores where nothing is yet. false: not all of [first, last] is a gap. */
        bool insert(std::uint64_t first, std::uint64_t last, T *entry)
        {
                std::error_code error;
                bool inserted = insert(first, last, entry, error);

                detail::check(error, "stook::range_map::insert");
                return inserted;
        }

        bool insert(std::uint64_t first, std::uint64_t last, T *entry,
                    std::error_code &error) noexcept
        {
                int status = stook_maple_insert(&tree_, first, last, plain(entry));

                error = error_of(status == -EEXIST ? 0 : status);
                return !status;
        }

        /* Removes the whole range that has @key in it. Returns its entry; nullptr: a gap. */
        T *erase(std::uint64_t key)
        {
                std::error_code error;
                T *entry = erase(key, error);

                detail::check(error, "stook::range_map::erase");
                return entry;
        }

        T *erase(std::uint64_t key, std::error_code &error) noexcept
        {
                int before = errno;
                void *entry;

                errno = 0;
                entry = stook_maple_erase(&tree_, key);
                error = error_of(entry ? 0 : errno);
                errno = before;
                return static_cast<T *>(entry);
        }

        /*
         * Stores @entry in the lowest gap of @size keys within [min, max]. Returns the first key;
         * nullopt: there is no such gap. For maps with STOOK_MAPLE_GAPS.
         */
        std::optional<std::uint64_t> alloc(T *entry, std::uint64_t size, std::uint64_t min = 0,
                                           std::uint64_t max = UINT64_MAX)
        {
                std::error_code error;
                auto first = alloc(entry, size, min, max, error);

                detail::check(error, "stook::range_map::alloc");
                return first;
        }

        std::optional<std::uint64_t> alloc(T *entry, std::uint64_t size, std::uint64_t min,
                                           std::uint64_t max, std::error_code &error) noexcept
        {
                std::uint64_t first;
                int status = stook_maple_alloc(&tree_, plain(entry), size, min, max, &first);

                error = error_of(status == -EBUSY ? 0 : status);
                if (status)
                        return std::nullopt;
                return first;
        }

        /* A guard for reading, in this thread: as long as it lives, no entry that it met goes. */
        [[nodiscard]] reader read() const noexcept
        {
                return reader(*this);
        }

        /* A guard for writing, in this thread. */
        [[nodiscard]] writer write() noexcept
        {
                return writer(*this);
        }

private:
        std::error_code init(unsigned flags) noexcept
        {
                return error_of(stook_maple_init(&tree_, flags));
        }

        static void *plain(T *entry) noexcept
        {
                return const_cast<void *>(static_cast<const void *>(entry));
        }

        mutable stook_maple tree_;
        const stook_rcu *rcu_ = nullptr;
};

/*
 * A read guard. In an RCU map it is a read section of the map's implementation: it takes no lock,
 * and writers go on beside it. In other maps it holds the map's lock. It is itself a range of all
 * the map's ranges. It ends in the thread that made it.
 */
template <class T> class range_map<T>::reader
{
public:
        explicit reader(const range_map &map) noexcept : map_(map)
        {
                if (!map.rcu_)
                        stook_maple_lock(&map.tree_);
                else if (map.rcu_->read_lock)
                        map.rcu_->read_lock();
        }

        reader(const reader &) = delete;
        reader &operator=(const reader &) = delete;

        ~reader()
        {
                if (!map_.rcu_)
                        stook_maple_unlock(&map_.tree_);
                else if (map_.rcu_->read_unlock)
                        map_.rcu_->read_unlock();
        }

        T *load(std::uint64_t key) const noexcept
        {
                return map_.load(key);
        }

        /* The ranges that have a key of [first, last] in them, in order. */
        range_view<T> between(std::uint64_t first, std::uint64_t last) const noexcept
        {
                return range_view<T>(&map_.tree_, first, last);
        }

        auto begin() const noexcept
        {
                return between(0, UINT64_MAX).begin();
        }

        auto end() const noexcept
        {
                return between(0, UINT64_MAX).end();
        }

private:
        const range_map &map_;
};

/*
 * A write guard: it holds the map's lock. The calls of the map may be made meanwhile; a loop over
 * the guard may store and erase, and goes on behind the range it is at.
 */
template <class T> class range_map<T>::writer
{
public:
        explicit writer(range_map &map) noexcept : map_(map)
        {
                stook_maple_lock(&map.tree_);
        }

        writer(const writer &) = delete;
        writer &operator=(const writer &) = delete;

        ~writer()
        {
                stook_maple_unlock(&map_.tree_);
        }

        range_view<T> between(std::uint64_t first, std::uint64_t last) const noexcept
        {
                return range_view<T>(&map_.tree_, first, last);
        }

        auto begin() const noexcept
        {
                return between(0, UINT64_MAX).begin();
        }

        auto end() const noexcept
        {
                return between(0, UINT64_MAX).end();
        }

private:
        friend class prepared_store;
        range_map &map_;
};

/*
 * A store that cannot fail:
 *
 *      auto writing = map.write();
 *      stook::range_map<region>::prepared_store store(writing, first, last, &region);
 *      ...                                             // whatever must come first
 *      store.commit();
 *
 * The map is not written to in between. Without commit() nothing is stored.
 */
template <class T> class range_map<T>::prepared_store
{
public:
        prepared_store(writer &writing, std::uint64_t first, std::uint64_t last, T *entry)
            : prepared_store(writing, first, last, entry, int())
        {
                detail::check(error_of(status_), "stook::range_map::prepared_store");
        }

        prepared_store(writer &writing, std::uint64_t first, std::uint64_t last, T *entry,
                       std::error_code &error) noexcept
            : prepared_store(writing, first, last, entry, int())
        {
                error = error_of(status_);
        }

        prepared_store(const prepared_store &) = delete;
        prepared_store &operator=(const prepared_store &) = delete;

        ~prepared_store()
        {
                stook_maple_cursor_finish(&cursor_);
        }

        void commit() noexcept
        {
                (void)stook_maple_cursor_store_prealloc(&cursor_, entry_);
        }

private:
        prepared_store(writer &writing, std::uint64_t first, std::uint64_t last, T *entry,
                       int) noexcept
            : cursor_(STOOK_MAPLE_CURSOR_INIT(&writing.map_.tree_, first, last)),
              entry_(plain(entry)), status_(stook_maple_cursor_preallocate(&cursor_, entry_))
        {
        }

        stook_maple_cursor cursor_;
        void *entry_;
        int status_;
};

} // namespace stook

#endif
