/*
 * <stook/range_cursor.hpp> - places in a map, from the guards of <stook/range_map.hpp>
 *
 *      auto writing = map.write();
 *      auto cursor = writing.cursor(0x1000);
 *
 *      while (auto found = cursor.find(0x1fff))
 *              if (found->entry == &old)
 *                      cursor.erase();
 *
 * A cursor is a stook_maple_cursor of <stook/maple.h>, which says where each call begins. It
 * belongs to the guard that it came from, and must not be used after the guard's end. Writes beside
 * it may overtake it: then it finds its place again.
 */
#ifndef STOOK_RANGE_CURSOR_HPP
#define STOOK_RANGE_CURSOR_HPP

#include <cstdint>
#include <optional>
#include <stook/error.hpp>
#include <stook/maple.h>

namespace stook
{

/* A range of a map, as a walk meets it. */
template <class T> struct range {
        std::uint64_t first, last;
        T *entry;
};

namespace detail
{

template <class T> void *plain(T *entry) noexcept
{
        return const_cast<void *>(static_cast<const void *>(entry));
}

/* A held range has no entry yet. */
template <class T> T *entry_of(void *found) noexcept
{
        return found == STOOK_MAPLE_PLACEHOLDER ? nullptr : static_cast<T *>(found);
}

} // namespace detail

/* A place that looks. */
template <class T> class range_cursor
{
public:
        range_cursor(stook_maple *tree, std::uint64_t key) noexcept
            : cursor_(STOOK_MAPLE_CURSOR_INIT(tree, key, key))
        {
        }

        /* The next call begins at @key. */
        void move(std::uint64_t key) noexcept
        {
                stook_maple_cursor_move(&cursor_, key, key);
        }

        /*
         * The range, or the gap, that the cursor's key is in. A gap and a held range have a null
         * entry.
         */
        range<T> walk() noexcept
        {
                void *entry = stook_maple_cursor_walk(&cursor_);

                return { cursor_.first, cursor_.last, detail::entry_of<T>(entry) };
        }

        /* The next range upwards that does not begin after @max; at first also the key's own. */
        std::optional<range<T>> find(std::uint64_t max = UINT64_MAX) noexcept
        {
                return met(stook_maple_cursor_find(&cursor_, max));
        }

        /* The next one downwards that does not end before @min. */
        std::optional<range<T>> find_down(std::uint64_t min = 0) noexcept
        {
                return met(stook_maple_cursor_find_rev(&cursor_, min));
        }

        /* The range after the current one, and the one before it. */
        std::optional<range<T>> next(std::uint64_t max = UINT64_MAX) noexcept
        {
                return met(stook_maple_cursor_next(&cursor_, max));
        }

        std::optional<range<T>> prev(std::uint64_t min = 0) noexcept
        {
                return met(stook_maple_cursor_prev(&cursor_, min));
        }

protected:
        stook_maple_cursor *raw() noexcept
        {
                return &cursor_;
        }

private:
        std::optional<range<T>> met(void *entry) const noexcept
        {
                if (!entry)
                        return std::nullopt;
                return range<T>{ cursor_.first, cursor_.last, static_cast<T *>(entry) };
        }

        stook_maple_cursor cursor_;
};

/* A place that writes, too. Each write leaves it on the range that was written. */
template <class T> class range_editor : public range_cursor<T>
{
public:
        using range_cursor<T>::range_cursor;

        /* Stores @entry in [first, last], over whatever is there. */
        void store(std::uint64_t first, std::uint64_t last, T *entry)
        {
                std::error_code error;

                store(first, last, entry, error);
                detail::check(error, "stook::range_editor::store");
        }

        void store(std::uint64_t first, std::uint64_t last, T *entry,
                   std::error_code &error) noexcept
        {
                stook_maple_cursor_move(this->raw(), first, last);
                error = error_of(stook_maple_cursor_store(this->raw(), detail::plain(entry)));
        }

        /*
         * Gives the range that the cursor stands on another entry. Before a call has found a range
         * that is the cursor's key alone: walk() takes it to the whole range, or the whole gap.
         */
        void replace(T *entry)
        {
                store(this->raw()->first, this->raw()->last, entry);
        }

        /*
         * Erases the range that the cursor stands on, or that its key is in. nullptr: that was a
         * gap, or a held range.
         */
        T *erase()
        {
                std::error_code error;
                T *old = erase(error);

                detail::check(error, "stook::range_editor::erase");
                return old;
        }

        T *erase(std::error_code &error) noexcept
        {
                void *old = nullptr;
                int status = stook_maple_cursor_erase(this->raw(), &old);

                error = error_of(status == -ENOENT ? 0 : status);
                return detail::entry_of<T>(old);
        }

        /*
         * Moves to the lowest, or the highest, place of @size keys within [min, max], and returns
         * its first key. Nothing: there is none, and the cursor stays.
         */
        std::optional<std::uint64_t> find_gap(std::uint64_t size, std::uint64_t min = 0,
                                              std::uint64_t max = UINT64_MAX)
        {
                return gap(stook_maple_cursor_empty_area(this->raw(), size, min, max));
        }

        std::optional<std::uint64_t> find_gap_top(std::uint64_t size, std::uint64_t min = 0,
                                                  std::uint64_t max = UINT64_MAX)
        {
                return gap(stook_maple_cursor_empty_area_rev(this->raw(), size, min, max));
        }

private:
        std::optional<std::uint64_t> gap(int status)
        {
                detail::check(error_of(status == -EBUSY ? 0 : status),
                              "stook::range_editor::find_gap");
                if (status)
                        return std::nullopt;
                return this->raw()->first;
        }
};

} // namespace stook

#endif
