// A drawing owns shapes of several kinds, and adds up what they cover.
#include <cstdio>
#include <vector>

struct shape {
#ifdef FIXED
        virtual ~shape() = default;
#endif
        virtual double area() const = 0;
};

struct square : shape {
        explicit square(double side) : side(side) {}
        double area() const override { return side * side; }
        double side;
};

struct rectangle : shape {
        rectangle(double width, double height) : width(width), height(height) {}
        double area() const override { return width * height; }
        double width, height;
};

class drawing {
public:
        ~drawing() { clear(); }
        void add(shape *s) { shapes_.push_back(s); }

        double area() const
        {
                double sum = 0;

                for (const shape *s : shapes_)
                        sum += s->area();
                return sum;
        }

        void clear()
        {
                for (const shape *s : shapes_)
                        delete s;
                shapes_.clear();
        }

private:
        std::vector<shape *> shapes_;
};

int main()
{
        drawing d;

        d.add(new square(2));
        d.add(new rectangle(3, 5));
        std::printf("%g\n", d.area());
        d.clear();
}
