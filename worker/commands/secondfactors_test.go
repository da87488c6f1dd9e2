package commands

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
)

// A member who lost every second factor can sign in with the password after an
// operator has run the command.
func TestResetSecondFactorsCommand(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `
		insert into staff (email, role, password_hash) values ('ada@example.com', 'admin', 'x');
		insert into second_factors (staff_id, kind, name, handle, secret) select id, 'totp', 'phone', 'h', 's' from staff;
		insert into recovery_codes (staff_id, hash) select id, 'r' from staff;
		insert into sign_ins (id, staff_id, ip, user_agent) select gen_random_uuid(), id, '::1', '' from staff`); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"DATABASE_URL": url}[name] }
	var out strings.Builder
	for _, args := range [][]string{{"reset-second-factors"}, {"reset-second-factors", "bob@example.com"}} {
		if err := Do(t.Context(), args, env, &out); config.ExitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := Do(t.Context(), []string{"reset-second-factors", "Ada@Example.com"}, env, &out); err != nil || !strings.Contains(out.String(), "removed: 1") {
		t.Errorf("%v %s", err, out.String())
	}
	var left int
	if err := conn.QueryRow(t.Context(), `select (select count(*) from second_factors) + (select count(*) from recovery_codes)
		+ (select count(*) from sign_ins where revoked_at is null) + 1 - (select count(*) from audit where action = 'staff.reset_second_factors')`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d left, %v", left, err)
	}
}
