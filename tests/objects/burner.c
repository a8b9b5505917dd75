/*
 * burner LIBRARY: calls library_deep until its standard input ends; says "ready"
 * when it has begun. For tests that need stacks through a library of known depth.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*deep)(int, int) = NULL;
    if (library) {
        *(void **)&deep = dlsym(library, "library_deep");
    }
    if (!deep) {
        fprintf(stderr, "usage: burner LIBRARY\n");
        return 2;
    }
    puts("ready");
    fflush(stdout);
    struct pollfd end = {.fd = 0, .events = POLLIN};
    while (poll(&end, 1, 0) == 0) {
        deep(20, 1000000);
    }
    return 0;
}
