/* The misuses of misuse.c with new[] and delete[], and those that C++ alone has. */
#include "misuse.c"
