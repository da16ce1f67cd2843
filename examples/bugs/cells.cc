// A sheet of cells. The sum of a row is kept in its last cell.
#include <cstdio>
#include <vector>

struct cell {
        long value;
        bool computed;
};

class sheet {
public:
        void add_row(long first, unsigned n)
        {
                for (unsigned i = 0; i < n; i++)
                        cells_.push_back({first + i, false});
        }

        // Adds the cell of a sum, and computes it.
        long sum()
        {
#ifdef FIXED
                cells_.reserve(cells_.size() + 2);
#endif
                cells_.push_back({0, false});
                cell &total = cells_.back();

                for (const cell &c : cells_)
                        total.value += c.computed ? 0 : c.value;
                cells_.push_back({total.value, true});
                total.computed = true;
                return cells_.back().value;
        }

private:
        std::vector<cell> cells_;
};

int main()
{
        sheet s;

        s.add_row(1, 7);
        long sum = s.sum();
        std::printf("%ld\n", sum);
}
