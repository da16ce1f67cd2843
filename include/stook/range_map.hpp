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
#include <stook/range_view.hpp>
#include <stook/rcu.h>

namespace stook
{

template <class T> class range_map
{
public:
        using range = stook::range<T>;
        class reader;
        class writer;
        class prepared_store;

        /* A key that alloc_cyclic() found. */
        struct cyclic {
                std::uint64_t key;
                bool wrapped;           /* the search went round */
        };

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

        /* load(), with the range's bounds. A gap and a held range have a null entry. */
        range load_range(std::uint64_t key) const noexcept
        {
                range at{};

                at.entry = static_cast<T *>(stook_maple_load_range(&tree_, key, &at.first,
                                                                   &at.last));
                return at;
        }

        /* Whether any key of [first, last] is taken. A held range is taken. */
        bool overlaps(std::uint64_t first, std::uint64_t last) const noexcept
        {
                return stook_maple_overlaps(&tree_, first, last);
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

        /*
         * Takes a gap for an entry that comes later. load() and loops find no entry there.
         * insert() and alloc() cannot take keys of it. store() gives the range its entry; erase()
         * makes it a gap again. false: not all of [first, last] is a gap.
         */
        bool hold(std::uint64_t first, std::uint64_t last)
        {
                std::error_code error;
                bool held = hold(first, last, error);

                detail::check(error, "stook::range_map::hold");
                return held;
        }

        bool hold(std::uint64_t first, std::uint64_t last, std::error_code &error) noexcept
        {
                int status = stook_maple_insert(&tree_, first, last, STOOK_MAPLE_PLACEHOLDER);

                error = error_of(status == -EEXIST ? 0 : status);
                return !status;
        }

        /* store() that returns the old entry of @first; nullptr: a gap, or a held range. */
        T *exchange(std::uint64_t first, std::uint64_t last, T *entry)
        {
                std::error_code error;
                T *old = exchange(first, last, entry, error);

                detail::check(error, "stook::range_map::exchange");
                return old;
        }

        T *exchange(std::uint64_t first, std::uint64_t last, T *entry,
                    std::error_code &error) noexcept
        {
                STOOK_MAPLE_CURSOR(cursor, &tree_, first, last);
                locked alone(&tree_);
                void *old = nullptr;

                error = error_of(stook_maple_cursor_replace(&cursor, plain(entry), &old));
                return entry_of(old);
        }

        /*
         * Stores the ranges of [from, to), which are forward iterators. Each range lies above all
         * ranges before it. The map gets its memory before the first store. So a store on the way
         * fails only for a range that is not in its place: std::errc::invalid_argument, and the
         * ranges before it stay. The map has no readers yet: call start_readers() afterwards.
         */
        template <class Iterator> void load_sorted(Iterator from, Iterator to)
        {
                std::error_code error;

                load_sorted(from, to, error);
                detail::check(error, "stook::range_map::load_sorted");
        }

        template <class Iterator>
        void load_sorted(Iterator from, Iterator to, std::error_code &error)
        {
                locked alone(&tree_);
                expecting nodes(&tree_);
                stook_maple_cursor &cursor = nodes.cursor;
                auto n = static_cast<std::uint64_t>(std::distance(from, to));
                int status = stook_maple_cursor_expect(&cursor, n);
                bool begun = false;

                for (; !status && from != to; ++from, begun = true) {
                        const range &next = *from;
                        bool above = begun ? next.first > cursor.last :
                                             !overlaps(next.first, UINT64_MAX);

                        stook_maple_cursor_set(&cursor, next.first, next.last);
                        status = above ? stook_maple_cursor_store(&cursor, plain(next.entry)) :
                                         -EINVAL;
                }
                error = error_of(status);
        }

        /* Removes the whole range that has @key in it. Returns its entry; nullptr: it had none. */
        T *erase(std::uint64_t key)
        {
                std::error_code error;
                T *entry = erase(key, error);

                detail::check(error, "stook::range_map::erase");
                return entry;
        }

        T *erase(std::uint64_t key, std::error_code &error) noexcept
        {
                void *entry = nullptr;
                int status = stook_maple_erase(&tree_, key, &entry);

                error = error_of(status == -ENOENT ? 0 : status);
                return entry_of(entry);
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
                std::uint64_t first = 0;
                int status = stook_maple_alloc(&tree_, plain(entry), size, min, max, &first);

                return found(status, first, error);
        }

        /* The same in the highest gap. */
        std::optional<std::uint64_t> alloc_top(T *entry, std::uint64_t size, std::uint64_t min = 0,
                                               std::uint64_t max = UINT64_MAX)
        {
                std::error_code error;
                auto first = alloc_top(entry, size, min, max, error);

                detail::check(error, "stook::range_map::alloc_top");
                return first;
        }

        std::optional<std::uint64_t> alloc_top(T *entry, std::uint64_t size, std::uint64_t min,
                                               std::uint64_t max, std::error_code &error) noexcept
        {
                std::uint64_t first = 0;
                int status = stook_maple_alloc_top(&tree_, plain(entry), size, min, max, &first);

                return found(status, first, error);
        }

        /*
         * Stores @entry at the lowest free key of [next, high], or of [low, high] if that has none.
         * @next becomes the key above it. nullopt: all of [low, high] is taken.
         */
        std::optional<cyclic> alloc_cyclic(T *entry, std::uint64_t &next, std::uint64_t low,
                                           std::uint64_t high)
        {
                std::error_code error;
                auto at = alloc_cyclic(entry, next, low, high, error);

                detail::check(error, "stook::range_map::alloc_cyclic");
                return at;
        }

        std::optional<cyclic> alloc_cyclic(T *entry, std::uint64_t &next, std::uint64_t low,
                                           std::uint64_t high, std::error_code &error) noexcept
        {
                std::uint64_t key = 0;
                int status = stook_maple_alloc_cyclic(&tree_, plain(entry), low, high, &next, &key);

                error = error_of(status == -EBUSY || status > 0 ? 0 : status);
                if (status < 0)
                        return std::nullopt;
                return cyclic{ key, status > 0 };
        }

        /* The first key of the lowest gap of @size keys within [min, max]; nothing is stored. */
        std::optional<std::uint64_t> find_gap(std::uint64_t size, std::uint64_t min,
                                              std::uint64_t max, std::error_code &error) noexcept
        {
                std::uint64_t first = 0;
                int status = stook_maple_empty_area(&tree_, size, min, max, &first);

                return found(status, first, error);
        }

        std::optional<std::uint64_t> find_gap(std::uint64_t size, std::uint64_t min = 0,
                                              std::uint64_t max = UINT64_MAX)
        {
                std::error_code error;
                auto first = find_gap(size, min, max, error);

                detail::check(error, "stook::range_map::find_gap");
                return first;
        }

        /* The same for the highest gap, and the highest place in it. */
        std::optional<std::uint64_t> find_gap_top(std::uint64_t size, std::uint64_t min,
                                                  std::uint64_t max,
                                                  std::error_code &error) noexcept
        {
                std::uint64_t first = 0;
                int status = stook_maple_empty_area_rev(&tree_, size, min, max, &first);

                return found(status, first, error);
        }

        std::optional<std::uint64_t> find_gap_top(std::uint64_t size, std::uint64_t min = 0,
                                                  std::uint64_t max = UINT64_MAX)
        {
                std::error_code error;
                auto first = find_gap_top(size, min, max, error);

                detail::check(error, "stook::range_map::find_gap_top");
                return first;
        }

        /*
         * From now on the map has readers that take no lock, as if it had been made with @rcu.
         * stop_readers() ends that. No other thread uses the map during these calls.
         */
        void start_readers(const stook_rcu &rcu)
        {
                std::error_code error;

                start_readers(rcu, error);
                detail::check(error, "stook::range_map::start_readers");
        }

        void start_readers(const stook_rcu &rcu, std::error_code &error) noexcept
        {
                error = error_of(stook_rcu_use(&rcu));
                if (!error)
                        error = error_of(stook_maple_set_rcu(&tree_, true));
                if (!error)
                        rcu_ = &rcu;
        }

        void stop_readers() noexcept
        {
                (void)stook_maple_set_rcu(&tree_, false);
                rcu_ = nullptr;
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
        /* The tree's own lock, where it has one. */
        class locked
        {
        public:
                explicit locked(stook_maple *tree) noexcept : tree_(tree)
                {
                        stook_maple_lock(tree_);
                }

                locked(const locked &) = delete;
                locked &operator=(const locked &) = delete;

                ~locked()
                {
                        stook_maple_unlock(tree_);
                }

        private:
                stook_maple *tree_;
        };

        /* A cursor that may hold nodes. */
        struct expecting {
                explicit expecting(stook_maple *tree) noexcept
                    : cursor(STOOK_MAPLE_CURSOR_INIT(tree, 0, 0))
                {
                }

                expecting(const expecting &) = delete;
                expecting &operator=(const expecting &) = delete;

                ~expecting()
                {
                        stook_maple_cursor_finish(&cursor);
                }

                stook_maple_cursor cursor;
        };

        std::error_code init(unsigned flags) noexcept
        {
                return error_of(stook_maple_init(&tree_, flags));
        }

        static void *plain(T *entry) noexcept
        {
                return detail::plain(entry);
        }

        static T *entry_of(void *found) noexcept
        {
                return detail::entry_of<T>(found);
        }

        static std::optional<std::uint64_t> found(int status, std::uint64_t first,
                                                  std::error_code &error) noexcept
        {
                error = error_of(status == -EBUSY ? 0 : status);
                if (status)
                        return std::nullopt;
                return first;
        }

        mutable stook_maple tree_;
        const stook_rcu *rcu_ = nullptr;
};

/*
 * A read guard. In an RCU map it is a read section of the map's implementation: it takes no lock,
 * and writers go on beside it. In other maps it holds the map's lock. It is itself a range of all
 * the map's ranges. It ends in the thread that made it.
 */
template <class T> class range_map<T>::reader : public range_loops<T>
{
public:
        explicit reader(const range_map &map) noexcept
            : range_loops<T>(&map.tree_), rcu_(map.rcu_)
        {
                if (!rcu_)
                        stook_maple_lock(this->tree());
                else if (rcu_->read_lock)
                        rcu_->read_lock();
        }

        reader(const reader &) = delete;
        reader &operator=(const reader &) = delete;

        ~reader()
        {
                if (!rcu_)
                        stook_maple_unlock(this->tree());
                else if (rcu_->read_unlock)
                        rcu_->read_unlock();
        }

        T *load(std::uint64_t key) const noexcept
        {
                return static_cast<T *>(stook_maple_load(this->tree(), key));
        }

private:
        const stook_rcu *rcu_;
};

/*
 * A write guard: it holds the map's lock. The calls of the map may be made meanwhile; a loop over
 * the guard may store and erase, and goes on behind the range it is at.
 */
template <class T> class range_map<T>::writer : public range_loops<T>
{
public:
        explicit writer(range_map &map) noexcept : range_loops<T>(&map.tree_)
        {
                stook_maple_lock(this->tree());
        }

        writer(const writer &) = delete;
        writer &operator=(const writer &) = delete;

        ~writer()
        {
                stook_maple_unlock(this->tree());
        }

        /* A cursor that also writes. */
        range_editor<T> cursor(std::uint64_t key = 0) const & noexcept
        {
                return range_editor<T>(this->tree(), key);
        }

        range_editor<T> cursor(std::uint64_t key = 0) const && = delete;

private:
        friend class prepared_store;
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
            : cursor_(STOOK_MAPLE_CURSOR_INIT(writing.tree(), first, last)),
              entry_(plain(entry)), status_(stook_maple_cursor_preallocate(&cursor_, entry_))
        {
        }

        stook_maple_cursor cursor_;
        void *entry_;
        int status_;
};

} // namespace stook

#endif
