import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Used by the others: a connection to the server, with nothing but the JDK. PINPRIQ_URL names the
 * server, by default pinpriq://127.0.0.1:7251.
 */
final class Pinpriq implements Closeable {
    /** What the server says when it refuses a command. The first word says why. */
    @SuppressWarnings("serial")
    static final class Refused extends RuntimeException {
        Refused(String message) {
            super(message);
        }
    }

    private final Socket socket = new Socket();
    private final InputStream input;
    private final OutputStream output;

    /** Connects, and then waits this long for each reply. That must be longer than any WAIT. */
    Pinpriq(int timeoutMs) throws IOException {
        String local = "pinpriq://127.0.0.1:7251";
        URI address = URI.create(System.getenv().getOrDefault("PINPRIQ_URL", local));
        socket.setSoTimeout(timeoutMs);
        socket.connect(new InetSocketAddress(address.getHost(), address.getPort()), timeoutMs);
        input = new BufferedInputStream(socket.getInputStream());
        output = new BufferedOutputStream(socket.getOutputStream());
        if (address.getUserInfo() != null) {
            String[] user = address.getUserInfo().split(":", 2);
            ask("AUTH", user[0], user[1]);
        }
    }

    /** Sends a command, and returns its reply: a String, a Long, a List of replies, or null. */
    Object ask(Object... words) throws IOException {
        send(words);
        return reply();
    }

    /** Asks for a command whose reply is an array. */
    @SuppressWarnings("unchecked")
    List<Object> list(Object... words) throws IOException {
        return (List<Object>) ask(words);
    }

    /** Sends a command whose reply is asked for later. */
    void send(Object... words) throws IOException {
        output.write(("*" + words.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
        for (Object word : words) {
            byte[] bytes = word.toString().getBytes(StandardCharsets.UTF_8);
            output.write(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
            output.write(bytes);
            output.write("\r\n".getBytes(StandardCharsets.US_ASCII));
        }
    }

    /** Sends what is still here. */
    void flush() throws IOException {
        output.flush();
    }

    /** Waits for the next reply. */
    Object reply() throws IOException {
        flush();
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case ':':
                return Long.valueOf(rest);
            case '-':
                throw new Refused(rest);
            case '$':
                int length = Integer.parseInt(rest);
                return length < 0 ? null : bulk(length);
            default:
                List<Object> parts = new ArrayList<>();
                for (int left = Integer.parseInt(rest); left > 0; left--) {
                    parts.add(reply());
                }
                return parts;
        }
    }

    private String bulk(int length) throws IOException {
        byte[] bytes = input.readNBytes(length);
        line();
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = input.read(); next != '\n'; next = input.read()) {
            if (next < 0) {
                throw new EOFException("the connection is closed");
            }
            line.append((char) next);
        }
        return line.substring(0, line.length() - 1);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
