/*
 * Proves that objects may end in other threads than those that made them: unique pointers through a
 * queue, containers, and sheaves that are handed over. All memory comes back.
 */
#include "check.hpp"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace
{

constexpr unsigned producers = 3;
constexpr unsigned messages = 4000;

struct message {
        unsigned sender, number;
        std::vector<unsigned, stook::allocator<unsigned>> body;

        message(unsigned s, unsigned n) : sender(s), number(n), body(n % 50, s)
        {
        }
};

class queue
{
public:
        void put(stook::unique_object<message> one)
        {
                {
                        std::lock_guard<std::mutex> guard(lock_);
                        waiting_.push_back(std::move(one));
                }
                some_.notify_one();
        }

        stook::unique_object<message> get()
        {
                std::unique_lock<std::mutex> guard(lock_);

                some_.wait(guard, [this] { return !waiting_.empty(); });
                auto one = std::move(waiting_.front());
                waiting_.pop_front();
                return one;
        }

private:
        std::mutex lock_;
        std::condition_variable some_;
        std::deque<stook::unique_object<message>, stook::allocator<stook::unique_object<message>>>
                waiting_;
};

void messages_end_elsewhere()
{
        stook::object_cache<message> cache("message");
        std::vector<std::thread> threads;
        unsigned next[producers] = {};
        queue between;

        for (unsigned s = 0; s < producers; s++)
                threads.emplace_back([&, s] {
                        for (unsigned n = 0; n < messages; n++)
                                between.put(cache.make_unique(s, n));
                });
        for (unsigned i = 0; i < producers * messages; i++) {
                auto one = between.get();

                CHECK(one->number == next[one->sender]++ && one->body.size() == one->number % 50);
                for (unsigned word : one->body)
                        CHECK(word == one->sender);
        }
        for (auto &thread : threads)
                thread.join();
        CHECK(cache.raw().stats().objects_live == 0);
}

void a_sheaf_is_handed_over()
{
        stook::object_cache<long> numbers("number");
        stook::object_sheaf<long> ready(numbers, 10);
        std::vector<long *> made;

        std::thread other([&numbers, &made, mine = std::move(ready)]() mutable {
                for (long i = 0; i < 10; i++)
                        made.push_back(mine.construct(i));
                (void)numbers;
        });
        other.join();
        for (long i = 0; i < 10; i++)
                CHECK(*made[static_cast<std::size_t>(i)] == i);
        for (long *number : made)
                numbers.destroy(number);
        CHECK(!numbers.raw().destroy());
}

} // namespace

int main()
{
        messages_end_elsewhere();
        a_sheaf_is_handed_over();
        return 0;
}
