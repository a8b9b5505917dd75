package io.jdagent.jmh;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What "jdtool export --format regions" wrote, and how it is printed. */
final class Regions {
    private static final int CONTEXT = 8; // instructions that are shown around hot ones

    private final List<Map<String, Object>> regions;
    private final List<Map<String, Object>> shares;
    private final double total;
    private final String event;

    Regions(String json) {
        Map<String, Object> root = map(Json.parse(json));
        regions = maps(root.get("regions"));
        shares = maps(root.get("shares"));
        double samples = 0;
        for (Map<String, Object> share : shares) {
            samples += samplesOf(share);
        }
        total = samples;
        StringBuilder events = new StringBuilder();
        for (Map<String, Object> each : maps(root.get("events"))) {
            events.append(events.length() > 0 ? ", " : "").append(each.get("name"));
        }
        event = events.toString();
    }

    double samples() {
        return total;
    }

    /** Percent of the samples that were in code of this kind. */
    double share(String kind) {
        double samples = 0;
        for (Map<String, Object> share : shares) {
            samples += kind.equals(share.get("kind")) ? samplesOf(share) : 0;
        }
        return percent(samples);
    }

    String print(int top, double threshold) {
        StringBuilder out = new StringBuilder();
        out.append(String.format("%.0f samples of %s in the measured iterations%n", total, event));
        printShares(out);
        printLines(out, 10);
        out.append(String.format("%nHottest regions:%n"));
        for (Map<String, Object> region : regions.subList(0, Math.min(20, regions.size()))) {
            out.append(String.format("  %6.2f%%  %-12s %s%n", percent(samplesOf(region)), kindOf(region),
                    longName((String) region.get("name"))));
        }
        int shown = 0;
        for (Map<String, Object> region : regions) {
            if (shown < top && region.get("instructions") != null && percent(samplesOf(region)) >= threshold) {
                printCode(out, region, ++shown);
            }
        }
        return out.toString();
    }

    private void printShares(StringBuilder out) {
        for (Map<String, Object> share : shares) {
            out.append(String.format("  %6.2f%%  %s%n", percent(samplesOf(share)), kindOf(share)));
        }
    }

    /** Source lines of generated code, the innermost of inlined methods' each. */
    private void printLines(StringBuilder out, int top) {
        Map<String, double[]> lines = new LinkedHashMap<>();
        for (Map<String, Object> region : regions) {
            List<Object> stacks = list(region.get("stacks"));
            for (Map<String, Object> instruction : maps(region.get("instructions"))) {
                if (instruction.get("samples") != null && instruction.get("stack") != null) {
                    List<Object> stack = list(stacks.get(number(instruction.get("stack"))));
                    lines.computeIfAbsent(frame(stack, 0), key -> new double[1])[0] += samplesOf(instruction);
                }
            }
        }
        List<Map.Entry<String, double[]>> sorted = new ArrayList<>(lines.entrySet());
        sorted.sort((a, b) -> Double.compare(b.getValue()[0], a.getValue()[0]));
        out.append(String.format("%nHottest lines:%n"));
        for (Map.Entry<String, double[]> line : sorted.subList(0, Math.min(top, sorted.size()))) {
            out.append(String.format("  %6.2f%%  %s%n", percent(line.getValue()[0]), line.getKey()));
        }
    }

    private void printCode(StringBuilder out, Map<String, Object> region, int number) {
        out.append(String.format("%n....[Hottest region %d: %.2f%%]%s%n", number, percent(samplesOf(region)),
                "...................................................................."));
        out.append(String.format("%s, %s, %d bytes at %s%n", region.get("name"), kindOf(region),
                number(region.get("size")), region.get("address")));
        List<Object> stacks = list(region.get("stacks"));
        List<Map<String, Object>> instructions = maps(region.get("instructions"));
        boolean[] near = near(instructions);
        long base = Long.decode((String) region.get("address"));
        int stack = -1;
        boolean gap = false;
        for (int i = 0; i < instructions.size(); i++) {
            Map<String, Object> instruction = instructions.get(i);
            if (!near[i]) {
                gap = true;
                continue;
            }
            if (gap) {
                out.append(String.format("            ...%n"));
                gap = false;
                stack = -1;
            }
            int its = instruction.get("stack") == null ? -1 : number(instruction.get("stack"));
            if (its != stack && its >= 0) {
                printStack(out, list(stacks.get(its)));
            }
            stack = its;
            double samples = samplesOf(instruction);
            String target = (String) instruction.get("target");
            out.append(String.format("  %7s  0x%x: %s%s%n", samples > 0 ? String.format("%.2f%%", percent(samples)) : "",
                    base + number(instruction.get("offset")), instruction.get("text"),
                    target == null ? "" : "  ; " + target));
        }
    }

    /** Which instructions are shown: those with samples worth telling, and those around them. */
    private boolean[] near(List<Map<String, Object>> instructions) {
        boolean[] near = new boolean[instructions.size()];
        for (int i = 0; i < near.length; i++) {
            if (percent(samplesOf(instructions.get(i))) >= 0.05) {
                for (int k = Math.max(0, i - CONTEXT); k < Math.min(near.length, i + CONTEXT + 1); k++) {
                    near[k] = true;
                }
            }
        }
        return near;
    }

    /** The inline tree at this place, from the compiled method inwards. */
    private static void printStack(StringBuilder out, List<Object> stack) {
        for (int i = stack.size() - 1; i >= 0; i--) {
            StringBuilder indent = new StringBuilder();
            for (int k = i; k < stack.size() - 1; k++) {
                indent.append("  ");
            }
            out.append(String.format("           ; %s%s%n", indent, frame(stack, i)));
        }
    }

    private static String frame(List<Object> stack, int i) {
        List<Object> frame = list(stack.get(i));
        String file = (String) frame.get(1);
        String name = file == null ? "?" : file.substring(file.lastIndexOf('/') + 1);
        int line = number(frame.get(2));
        return shortName((String) frame.get(0)) + " (" + name + (line > 0 ? ":" + line : "") + ")";
    }

    /** "pkg.Cls.m(int)" as "pkg.Cls.m". */
    private static String longName(String name) {
        return name == null ? "?" : name.indexOf('(') > 0 ? name.substring(0, name.indexOf('(')) : name;
    }

    /** "pkg.Cls.m(int)" as "Cls.m". */
    private static String shortName(String name) {
        String method = longName(name);
        int dot = method.lastIndexOf('.', method.lastIndexOf('.') - 1);
        return method.substring(dot + 1);
    }

    private static String kindOf(Map<String, Object> region) {
        int tier = number(region.get("tier"));
        String kind = String.valueOf(region.get("kind"));
        String osr = Boolean.TRUE.equals(region.get("osr")) ? ", OSR" : "";
        return tier == 4 ? "C2" + osr : tier > 0 ? "C1, tier " + tier + osr : kind;
    }

    private double percent(double samples) {
        return total > 0 ? 100 * samples / total : 0;
    }

    /** Of all events together: a hybrid machine has one for each kind of core. */
    private static double samplesOf(Map<String, Object> counted) {
        double sum = 0;
        for (Object samples : list(counted.get("samples"))) {
            sum += (Double) samples;
        }
        return sum;
    }

    private static int number(Object value) {
        return value == null ? 0 : ((Double) value).intValue();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> list(Object value) {
        return value == null ? new ArrayList<>() : (List<Object>) value;
    }

    private static List<Map<String, Object>> maps(Object value) {
        List<Map<String, Object>> maps = new ArrayList<>();
        for (Object each : list(value)) {
            maps.add(map(each));
        }
        return maps;
    }
}
