/*
 * <stook/range_view.hpp> - loops over the ranges of a map, as the guards of <stook/range_map.hpp>
 * return them
 *
 *      auto reading = map.read();
 *
 *      for (auto [first, last, region] : reading.between(0x1000, 0x1fff))
 *
 * The guard must live as long as the loop. So it is a variable: before C++23 a temporary guard ends
 * before the loop begins. A call of between() on a temporary guard does not compile.
 */
#ifndef STOOK_RANGE_VIEW_HPP
#define STOOK_RANGE_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stook/maple.h>
#include <stook/range_cursor.hpp>

namespace stook
{

/* The ranges of a map between two keys: see range_loops. */
template <class T> class range_view
{
public:
        /*
         * An input iterator. In a map without RCU, ranges that the loop has not met yet may be
         * changed.
         */
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

/* What the guards of a map have in common: each is a range of all the map's ranges. */
template <class T> class range_loops
{
public:
        /* The ranges that have a key of [first, last] in them, in order. */
        range_view<T> between(std::uint64_t first, std::uint64_t last) const & noexcept
        {
                return range_view<T>(tree_, first, last);
        }

        /* A loop over it would go on after the end of the guard. */
        range_view<T> between(std::uint64_t first, std::uint64_t last) const && = delete;

        /* A cursor that begins at @key. It must not be used after the guard's end. */
        range_cursor<T> cursor(std::uint64_t key = 0) const & noexcept
        {
                return range_cursor<T>(tree_, key);
        }

        range_cursor<T> cursor(std::uint64_t key = 0) const && = delete;

        auto begin() const noexcept
        {
                return between(0, UINT64_MAX).begin();
        }

        auto end() const noexcept
        {
                return between(0, UINT64_MAX).end();
        }

protected:
        explicit range_loops(stook_maple *tree) noexcept : tree_(tree)
        {
        }

        ~range_loops() = default;

        stook_maple *tree() const noexcept
        {
                return tree_;
        }

private:
        stook_maple *tree_;
};

} // namespace stook

#endif
