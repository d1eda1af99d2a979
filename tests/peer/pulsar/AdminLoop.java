import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;

/**
 * pulsar-admin for many commands, each a line of words between tabs on stdin: a start takes two seconds.
 * The answer to each is a line, "ok" or "failed", a blank and a number, and as many bytes of output.
 */
public final class AdminLoop extends PulsarAdminTool {
    private AdminLoop(Properties properties) throws Exception {
        super(properties);
    }

    public static void main(String[] arguments) throws Exception {
        allowSystemExit = false;
        Properties properties = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            properties.load(file);
        }
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            PrintStream output = new PrintStream(bytes, true, StandardCharsets.UTF_8);
            System.setOut(output);
            System.setErr(output);
            boolean isDone;
            try {
                isDone = new AdminLoop(properties).run(line.split("\t"));
            } catch (Exception error) {
                error.printStackTrace(output);
                isDone = false;
            }
            output.flush();
            answers.println((isDone ? "ok " : "failed ") + bytes.size());
            bytes.writeTo(answers);
            answers.flush();
        }
    }
}
