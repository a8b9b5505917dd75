#include "jdtool/save.h"

#include "jdtool/inject.h"
#include "jdtool/sinks/saved_sink.h"
#include "jdtool/stream.h"

int save_samples(const struct inject_options *options)
{
    struct sample_sink *sink;
    struct stream_result result;
    const struct stream_options stream = {.input = options->input,
                                          .build_id_dir = options->build_id_dir,
                                          .dumps = options->dumps,
                                          .dump_count = options->dump_count,
                                          .symbolize = true};
    int err = saved_sink_new(options->save, &sink);
    return err ? err : stream_run(&stream, &sink, 1, &result);
}
