package io.jdagent.jmh;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as jdtool writes it: Map, List, String, Double, Boolean, null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.peek() != 0) {
            throw json.wrong();
        }
        return value;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at character " + at);
    }

    /** The next character that is no blank; 0 at the end. */
    private char peek() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) {
        if (peek() != c) {
            throw wrong();
        }
        at++;
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            default:
                return literal();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        while (peek() != '}') {
            if (!members.isEmpty()) {
                expect(',');
            }
            peek();
            String key = string();
            expect(':');
            members.put(key, value());
        }
        at++;
        return members;
    }

    private List<Object> array() {
        List<Object> elements = new ArrayList<>();
        expect('[');
        while (peek() != ']') {
            if (!elements.isEmpty()) {
                expect(',');
            }
            elements.add(value());
        }
        at++;
        return elements;
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        expect('"');
        while (at < text.length() && text.charAt(at) != '"') {
            char c = text.charAt(at++);
            if (c == '\\' && at < text.length()) {
                c = text.charAt(at++);
                if (c == 'u' && at + 4 <= text.length()) {
                    c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                    at += 4;
                } else {
                    int known = "nrtbf".indexOf(c);
                    c = known < 0 ? c : "\n\r\t\b\f".charAt(known);
                }
            }
            out.append(c);
        }
        at++;
        return out.toString();
    }

    private Object literal() {
        int start = at;
        while (at < text.length() && "+-.eE".indexOf(text.charAt(at)) >= 0
                || at < text.length() && Character.isLetterOrDigit(text.charAt(at))) {
            at++;
        }
        String word = text.substring(start, at);
        switch (word) {
            case "null":
                return null;
            case "true":
                return Boolean.TRUE;
            case "false":
                return Boolean.FALSE;
            default:
                try {
                    return Double.valueOf(word);
                } catch (NumberFormatException e) {
                    throw wrong();
                }
        }
    }
}
