package headgate.peer;

import java.util.Objects;

/** Cases that are played one after the other: a line for each, and how many were not as promised. */
final class Cases {
    private int failures;

    /** One case, and what was seen in it. */
    interface Play {
        Object see() throws Exception;
    }

    /** Play a case; what is seen, or the name of the error that ends it, must be what is promised. */
    void play(String name, Object promised, Play play) {
        Object seen;
        try {
            seen = play.see();
        } catch (Exception error) {
            seen = Sends.nameOf(error);
        }
        boolean good = Objects.equals(String.valueOf(promised), String.valueOf(seen));
        failures += good ? 0 : 1;
        System.out.println((good ? "ok    " : "WRONG ") + name + ": " + seen
                + (good ? "" : ", promised was " + promised));
    }

    /** Say how it went, and end the process with that status. */
    void finish() {
        System.out.println(failures == 0 ? "all as promised" : failures + " not as promised");
        System.exit(failures == 0 ? 0 : 1);
    }
}
