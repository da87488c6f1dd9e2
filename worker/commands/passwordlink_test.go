package commands

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

func TestPasswordLinkCommand(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `
		insert into staff (email, role, password_hash) values ('ada@example.com', 'admin', 'x');
		insert into staff (email, role, password_hash, disabled_at) values ('former@example.com', 'admin', 'x', now())`); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"DATABASE_URL": url, "PUBLIC_URL": "https://drops.example.com"}
	env := func(name string) string { return variables[name] }
	var out strings.Builder
	for _, args := range [][]string{{"password-link"}, {"password-link", "bob@example.com"}, {"password-link", "former@example.com"}} {
		if err := Do(t.Context(), args, env, &out); config.ExitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	musttest.OK(t, Do(t.Context(), []string{"password-link", "Ada@Example.com"}, env, &out))
	address, _, _ := strings.Cut(out.String(), "\n")
	token, ours := strings.CutPrefix(address, "https://drops.example.com/password?token=")
	var stored string
	err = conn.QueryRow(t.Context(), `
		select l.purpose from password_links l join staff s on s.id = l.staff_id
		where s.email = 'ada@example.com' and l.hash = $1
			and exists (select from audit where action = 'staff.password_link' and actor like 'system%')`, staff.HashSecret(token)).Scan(&stored)
	if !ours || err != nil || stored != "password_reset" {
		t.Errorf("%q, purpose %q, %v", address, stored, err)
	}
	variables["CONSOLE_PASSWORDS"] = "off"
	if err := Do(t.Context(), []string{"password-link", "ada@example.com"}, env, &out); config.ExitCode(err) != 2 {
		t.Errorf("while passwords are off: %v", err)
	}
}
