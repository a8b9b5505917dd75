/* Fuzzes the agent's option string. */
#include "agent/session/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct options *options = malloc(sizeof(*options));
    if (!text || !options) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = 0;
    char error[OPTIONS_ERROR_MAX];
    memset(error, 'x', sizeof(error));
    if (options_parse(text, options, error) == 0) {
        if (options->modes == 0 || strlen(options->dir) >= sizeof(options->dir)) {
            fprintf(stderr, "accepted, and yet without a mode or with an endless path\n");
            abort();
        }
    } else if (!memchr(error, 0, sizeof(error)) || !error[0]) {
        fprintf(stderr, "refused without a message\n");
        abort();
    }
    free(options);
    free(text);
    return 0;
}
