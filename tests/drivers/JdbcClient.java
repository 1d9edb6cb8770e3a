// The JDBC driver of PostgreSQL: SCRAM over verified TLS, server-side prepared statements, and a batch that fails and keeps nothing.
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

public class JdbcClient {
    static Connection connect(String password) throws SQLException {
        String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PORT") + "/x?sslmode=verify-full&prepareThreshold=1&sslrootcert=" + System.getenv("CA");
        return DriverManager.getConnection(url, "ada", password);
    }

    static void expect(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection ada = connect(System.getenv("ADA"));
             PreparedStatement select = ada.prepareStatement("SELECT id, n FROM by_n WHERE n >= ? AND n < ? ORDER BY n")) {
            for (int round = 0; round < 3; round++) {
                select.setLong(1, 2);
                select.setLong(2, 4);
                try (ResultSet rows = select.executeQuery()) {
                    for (long n = 2; n < 4; n++) {
                        expect(rows.next() && rows.getLong("n") == n && rows.getString("id").equals("" + n), "row " + n);
                    }
                    expect(!rows.next(), "two rows");
                }
            }
            try (var statement = ada.createStatement()) {
                statement.execute("INSERT INTO docs (id, doc) VALUES ('9', '{}')");
                expect(false, "a user without the privilege has written");
            } catch (SQLException refused) {
                expect("42501".equals(refused.getSQLState()), refused.toString());
            }
        }
        try (Connection ada = connect(System.getenv("ADA"));
             PreparedStatement insert = ada.prepareStatement("INSERT INTO batches (id, doc) VALUES (?, '{}')");
             PreparedStatement get = ada.prepareStatement("SELECT id FROM batches WHERE id = ?")) {
            for (String[] ids : new String[][] {{"jdbc1", "jdbc2"}, {"jdbc3", "jdbc1"}}) {
                for (String id : ids) {
                    insert.setString(1, id);
                    insert.addBatch();
                }
                try {
                    expect(insert.executeBatch().length == 2 && ids[0].equals("jdbc1"), "the first batch is stored");
                } catch (BatchUpdateException refused) {
                    expect("23505".equals(refused.getSQLState()) && ids[0].equals("jdbc3"), refused.toString());
                }
            }
            for (int n = 1; n <= 3; n++) {
                get.setString(1, "jdbc" + n);
                try (ResultSet rows = get.executeQuery()) {
                    expect(rows.next() == (n < 3), "jdbc" + n);
                }
            }
        }
        try {
            connect("wrong");
            expect(false, "a wrong password was taken");
        } catch (SQLException refused) {
            expect("28P01".equals(refused.getSQLState()), refused.toString());
        }
    }
}
