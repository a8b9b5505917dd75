package io.jdagent.jmh;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.profile.ExternalProfiler;
import org.openjdk.jmh.profile.ProfilerException;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.BenchmarkResultMetaData;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;
import org.openjdk.jmh.results.TextResult;

/**
 * Has perf record each fork, with jdagent in it to tell of its code, and shows the hottest code of the
 * measured iterations: instructions with Java lines, inline tree and tier. Neither hsdis nor
 * -XX:+PrintAssembly is needed, and where there is no hardware counter a timer samples.
 */
public class JdagentProfiler implements ExternalProfiler {
    private static final String HELP = "options of -prof jdagent, separated by ';' or ',': event=NAME (default: cycles, or "
            + "cpu-clock without counters), frequency=HZ (997), stacks=none|fp|dwarf (fp), top=N (3: how many "
            + "regions are shown), threshold=PERCENT (5), dir=DIR (where profiles are kept; default: none are), "
            + "baseline=DIR (profiles of an earlier dir, to compare with), flame, export=FORMAT, home=DIR (where jdagent is installed or built)";

    /** The perf to run, as jdperf has it: PERF of the environment. */
    private static final String PERF = System.getenv("PERF") == null || System.getenv("PERF").isEmpty() ? "perf"
            : System.getenv("PERF");

    private String event;
    private int frequency = 997;
    private String stacks = "fp";
    private int top = 3;
    private double threshold = 5;
    private Path keep;
    private boolean flame;
    private String export;
    private Path baseline;
    private Path jdtool;
    private Path agent;
    private Path profile; // of the fork that runs; JMH asks for options once for all forks of a benchmark
    private int fork;

    public JdagentProfiler(String options) throws ProfilerException {
        String home = System.getenv("JDAGENT_HOME");
        for (String option : options.split("[;,]")) {
            int equals = option.indexOf('=');
            String key = (equals < 0 ? option : option.substring(0, equals)).trim();
            String value = equals < 0 ? "" : option.substring(equals + 1).trim();
            try {
                if (key.equals("home")) {
                    home = value;
                } else if (!key.isEmpty()) {
                    set(key, value);
                }
            } catch (NumberFormatException e) {
                throw new ProfilerException(key + " is no number: '" + value + "'; " + HELP);
            }
        }
        find(home);
        if (event == null) {
            event = records("cycles") ? "cycles" : "cpu-clock";
        }
        if (!records(event)) {
            throw new ProfilerException("perf cannot record " + event + " here: " + said);
        }
    }

    private void set(String key, String value) throws ProfilerException {
        switch (key) {
            case "event":
                event = value;
                break;
            case "frequency":
                frequency = Integer.parseInt(value);
                break;
            case "stacks":
                if (!Arrays.asList("none", "fp", "dwarf").contains(value)) {
                    throw new ProfilerException("no stacks '" + value + "'; " + HELP);
                }
                stacks = value;
                break;
            case "top":
                top = Integer.parseInt(value);
                break;
            case "threshold":
                threshold = Double.parseDouble(value);
                break;
            case "dir":
                keep = Paths.get(value);
                break;
            case "flame":
                flame = true;
                break;
            case "baseline":
                baseline = Paths.get(value);
                break;
            case "export":
                export = value;
                break;
            default:
                throw new ProfilerException("unknown option '" + key + "'; " + HELP);
        }
    }

    /** jdtool and the agent: installed (bin, lib), built (one directory), or jdtool on the path. */
    private void find(String home) throws ProfilerException {
        List<Path> candidates = new ArrayList<>();
        if (home != null && !home.isEmpty()) {
            candidates.add(Paths.get(home));
            candidates.add(Paths.get(home, "bin"));
            candidates.add(Paths.get(home, "build"));
        } else {
            for (String directory : System.getenv("PATH").split(File.pathSeparator)) {
                candidates.add(Paths.get(directory));
            }
        }
        for (Path directory : candidates) {
            Path tool = directory.resolve("jdtool");
            if (Files.isExecutable(tool)) {
                for (String beside : new String[] {"libjdagent.so", "../lib/libjdagent.so",
                        "../lib/x86_64-linux-gnu/libjdagent.so", "../lib/aarch64-linux-gnu/libjdagent.so"}) {
                    Path library = directory.resolve(beside);
                    if (Files.isReadable(library)) {
                        jdtool = tool.toAbsolutePath().normalize();
                        agent = library.toAbsolutePath().normalize();
                        return;
                    }
                }
            }
        }
        throw new ProfilerException("no jdtool with libjdagent.so in " + candidates
                + ": say home=DIR or set JDAGENT_HOME");
    }

    private String said = "";

    /** Runs a command; its output is in said. Its exit status, -1 where it cannot be run. */
    private int run(String... command) {
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true)
                    .redirectInput(new File("/dev/null")).start();
            java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
            byte[] part = new byte[8192];
            for (int n; (n = process.getInputStream().read(part)) > 0;) {
                out.write(part, 0, n);
            }
            said = out.toString("UTF-8").trim();
            return process.waitFor();
        } catch (IOException e) {
            said = e.getMessage();
            return -1;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            said = "interrupted";
            return -1;
        }
    }

    private boolean records(String name) {
        return run(PERF, "record", "-q", "-o", "/dev/null", "-e", name, "--", "true") == 0;
    }

    @Override
    public Collection<String> addJVMInvokeOptions(BenchmarkParams params) {
        newProfile(params);
        // Without --no-bpf-event short threads may have no samples: PERF_OF_TASKS in jdtool/record/perf_run.h.
        List<String> command = new ArrayList<>(Arrays.asList(PERF, "record", "-q", "--no-bpf-event", "-k", "mono",
                "-e", event, "-F", String.valueOf(frequency), "-o", profile.resolve("perf.data").toString()));
        if (stacks.equals("fp")) {
            command.add("-g");
        } else if (stacks.equals("dwarf")) {
            command.addAll(Arrays.asList("--call-graph", "dwarf,16384"));
        }
        command.add("--");
        return command;
    }

    @Override
    public Collection<String> addJVMOptions(BenchmarkParams params) {
        List<String> options = new ArrayList<>(Arrays.asList("-XX:+UnlockDiagnosticVMOptions",
                "-XX:+DebugNonSafepoints", "-agentpath:" + agent + "=dir=" + profile
                + (stacks.equals("dwarf") ? ",methods=on" : "")));
        if (stacks.equals("fp")) {
            options.add("-XX:+PreserveFramePointer");
        }
        return options;
    }

    private void newProfile(BenchmarkParams params) {
        try {
            if (keep != null) {
                Files.createDirectories(keep);
            }
            String prefix = params.getBenchmark().replaceAll("[^A-Za-z0-9.]", "_") + "-";
            profile = keep != null ? Files.createTempDirectory(keep, prefix) : Files.createTempDirectory(prefix);
            profile = profile.toAbsolutePath(); // the fork may be elsewhere
            fork = 0;
        } catch (IOException e) {
            throw new IllegalStateException("no directory for the profile: " + e.getMessage(), e);
        }
    }

    @Override
    public void beforeTrial(BenchmarkParams params) {
        try {
            Files.createDirectories(profile); // gone with the fork before
            // What makes it a profile that jdperf's verbs open.
            Files.write(profile.resolve("profile"), Arrays.asList("jdperf-profile=1", "command=JMH "
                    + params.getBenchmark(), "event=" + event, "frequency=" + frequency, "stacks=" + stacks));
        } catch (IOException e) {
            throw new IllegalStateException("no directory for the profile: " + e.getMessage(), e);
        }
    }

    @Override
    public Collection<? extends Result> afterTrial(BenchmarkResult benchmark, long pid, File out, File err) {
        List<Result> results = new ArrayList<>();
        StringBuilder text = new StringBuilder();
        StringBuilder made = new StringBuilder("regions.json ");
        try {
            Path regions = profile.resolve("regions.json");
            List<String> when = measured(benchmark);
            if (convert("regions", regions, when) == 0) {
                Regions read = new Regions(new String(Files.readAllBytes(regions), StandardCharsets.UTF_8));
                text.append(read.print(top, threshold));
                for (String kind : new String[] {"compiled", "interpreted", "stub", "native", "kernel"}) {
                    results.add(new ScalarResult("·jdagent." + kind, read.share(kind), "%", AggregationPolicy.AVG));
                }
                results.add(new ScalarResult("·jdagent.samples", read.samples(), "samples", AggregationPolicy.SUM));
            } else {
                text.append("jdtool export failed: ").append(said).append('\n');
            }
            if (export != null) {
                Path exported = profile.resolve("profile." + export);
                made.append(convert(export, exported, when) == 0 ? exported.getFileName() : said).append(' ');
            }
            if (flame) {
                Path page = profile.resolve("flamegraph.html");
                int status = run(jdperf(), "flame", profile.toString(), "-o", page.toString());
                made.append(status == 0 ? page.getFileName() : "no flame graph: " + said).append(' ');
            }
            if (keep == null && export == null && !flame) {
                remove(profile);
            } else {
                Path kept = profile.resolveSibling(profile.getFileName() + ".fork" + ++fork);
                Files.move(profile, kept);
                text.append("profile, in ").append(kept).append(": ").append(made).append('\n');
                if (baseline != null && keep != null && benchmark != null && fork == benchmark.getParams().getForks()) {
                    text.append(compare(kept, when));
                }
            }
        } catch (IOException | RuntimeException e) {
            text.append("the profile cannot be read: ").append(e).append('\n');
        }
        results.add(new TextResult(text.toString(), "jdagent"));
        return results;
    }

    /** What changed since the baseline by more than chance; both have a profile a fork. */
    private String compare(Path last, List<String> when) throws IOException {
        String forks = last.getFileName().toString().replaceAll("\\d+$", "");
        String benchmark = forks.replaceAll("-[^-]*$", "-");
        List<String> command = new ArrayList<>(Arrays.asList(jdperf(), "diff", "--before"));
        command.addAll(profiles(baseline, benchmark));
        command.add("--after");
        command.addAll(profiles(last.getParent(), forks));
        command.addAll(when);
        run(command.toArray(new String[0]));
        return "Since " + baseline + ":\n" + said + "\n";
    }

    private static List<String> profiles(Path directory, String prefix) throws IOException {
        List<String> found = new ArrayList<>();
        try (java.util.stream.Stream<Path> files = Files.list(directory)) {
            files.filter(file -> file.getFileName().toString().startsWith(prefix)
                    && file.getFileName().toString().matches(".*\\.fork\\d+")).sorted().forEach(file -> found.add(file.toString()));
        }
        return found;
    }

    /** Installed beside jdtool, in a checkout among the scripts. */
    private String jdperf() {
        Path beside = jdtool.resolveSibling("jdperf");
        Path script = jdtool.resolveSibling("../scripts/jdperf").normalize();
        return (Files.isExecutable(beside) || !Files.isExecutable(script) ? beside : script).toString();
    }

    private int convert(String format, Path into, List<String> options) {
        List<String> command = new ArrayList<>(Arrays.asList(jdtool.toString(), "export", "-i", profile.toString(),
                "--format", format, "-o", into.toString()));
        command.addAll(options);
        return run(command.toArray(new String[0]));
    }

    /** The measured iterations, as seconds behind the first sample, which is the fork's beginning. */
    private static List<String> measured(BenchmarkResult benchmark) {
        BenchmarkResultMetaData when = benchmark == null ? null : benchmark.getMetadata();
        if (when == null || when.getMeasurementTime() <= when.getStartTime()) {
            return Collections.emptyList();
        }
        return Arrays.asList("--from", seconds(when.getMeasurementTime() - when.getStartTime()), "--to",
                seconds(when.getStopTime() - when.getStartTime()));
    }

    private static String seconds(long milliseconds) {
        return String.format(Locale.ROOT, "%.3f", milliseconds / 1000.0);
    }

    private static void remove(Path directory) throws IOException {
        try (java.util.stream.Stream<Path> files = Files.walk(directory)) {
            List<Path> all = new ArrayList<>();
            files.forEach(all::add);
            Collections.reverse(all);
            for (Path file : all) {
                Files.deleteIfExists(file);
            }
        }
    }

    @Override
    public boolean allowPrintOut() {
        return true;
    }

    @Override
    public boolean allowPrintErr() {
        return true;
    }

    @Override
    public String getDescription() {
        return "perf with jdagent: hottest code with Java lines, inline tree and tier; needs no hsdis";
    }
}
