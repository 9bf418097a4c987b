import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.zip.CRC32;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Decompresses as Kafka does: for each line "codec magic hex" it prints "ok size crc32" or the class
 * of the exception. What is larger than LIMIT bytes is "large".
 */
public class Decode {
    private static final int LIMIT = 8 << 20;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in), 1 << 20);
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 3);
            byte[] data = HexFormat.of().parseHex(words.length > 2 ? words[2] : "");
            out.println(decode(Integer.parseInt(words[0]), Byte.parseByte(words[1]), data));
        }
        out.flush();
    }

    private static String decode(int codec, byte magic, byte[] data) {
        CRC32 crc = new CRC32();
        byte[] piece = new byte[1 << 16];
        int size = 0;
        try {
            CompressionType type = CompressionType.forId(codec);
            ByteBuffer buffer = ByteBuffer.wrap(data);
            try (InputStream stream = Compression.of(type).build()
                    .wrapForInput(buffer, magic, BufferSupplier.NO_CACHING)) {
                for (int count = stream.read(piece); count != -1; count = stream.read(piece)) {
                    crc.update(piece, 0, count);
                    size += count;
                    if (size > LIMIT) {
                        return "large";
                    }
                }
            }
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName() + " " + String.valueOf(cause.getMessage()).replace('\n', ' ');
        }
        return "ok " + size + " " + Long.toHexString(crc.getValue());
    }
}
