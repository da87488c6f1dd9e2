package audience_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func TestUsers(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	if _, err := users.User(t.Context(), 1); !errors.Is(err, user.ErrNotFound) {
		t.Fatalf("an unknown user: %v", err)
	}
	push := []user.PushSubscription{{Endpoint: "https://p.example.com/1", P256dh: "k", Auth: "a"}}
	w.Upsert(user.Change{ID: 1, Name: new("Ann"), Email: new("Ann@example.com"), Push: &push, OptOuts: new(uint8(6)),
		Quiet: &user.QuietHours{From: 1320, To: 480}, Attributes: &map[string]any{"tier": "gold"}}, user.Change{ID: 2})
	u, err := users.User(t.Context(), 1)
	w.Must(err)
	if len(u.Push) != 1 || u.Push[0] != push[0] {
		t.Fatalf("stored %+v", u)
	}
	want := u
	want.Name, want.Email, want.OptOuts, want.Quiet.To, want.Locale = "Ann", "Ann@example.com", 6, 480, ""
	if diff := cmp.Diff(want, u); diff != "" {
		t.Fatalf("user (-want +got):\n%s", diff)
	}
	w.Upsert(user.Change{ID: 1, Email: new("")}, user.Change{ID: 3, Name: new("New")})
	if u, err = users.User(t.Context(), 1); err != nil || u.Email != "" || u.Name != "Ann" || u.OptOuts != 6 || len(u.Push) != 1 {
		t.Fatalf("after clearing the address: %+v %v", u, err)
	}
	if n := w.Number(`select count(*) from users where attributes->>'tier' = 'gold'`); n != 1 {
		t.Fatal("attributes are lost")
	}
	if n := w.Number(`select count(*) from outbox where topic = 'users.changed.v1' and payload->>'from_user' = '1'`); n != 2 {
		t.Fatalf("%d announcements, want 2", n)
	}
}

// Importing the same list again must not write every row again.
func TestUnchangedUsersAreNotWritten(t *testing.T) {
	w := newFixture(t)
	w.Upsert(user.Change{ID: 1, Name: new("Ann")}, user.Change{ID: 2, Name: new("Bob")})
	before := w.Number(`select sum(xmin::text::bigint) from users`)
	w.Upsert(user.Change{ID: 1, Name: new("Ann")}, user.Change{ID: 2, Name: new("Bob"), Email: nil})
	// The lock that orders updates leaves its mark in xmax, not in xmin.
	if after := w.Number(`select sum(xmin::text::bigint) from users`); after != before {
		t.Fatal("unchanged rows were written")
	}
}

// Imports of the same users in any order wait for each other without deadlock
// and lose nothing.
func TestConcurrentUpserts(t *testing.T) {
	w := newFixture(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for round := range 10 {
				var changes []user.Change
				for i := range 200 {
					id := user.ID(i + 1)
					if g%2 == 1 {
						id = user.ID(200 - i)
					}
					c := user.Change{ID: id}
					if g%2 == 0 {
						c.Name = new(fmt.Sprint("n", g, round))
					} else {
						c.Email = new(fmt.Sprintf("e%d-%d@example.com", g, round))
					}
					changes = append(changes, c)
				}
				if err := audiencedb.NewUsers(w.DB).Upsert(t.Context(), changes, staff.Entry{}); err != nil {
					t.Errorf("import: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from users where name <> '' and email <> ''`); n != 200 {
		t.Fatalf("%d of 200 users have what both imports told", n)
	}
}

func TestFindUsers(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Upsert(user.Change{ID: 13, Name: new("Ann Lee")}, user.Change{ID: 7, Email: new("Ann@example.com")}, user.Change{ID: 138, Phone: new("+8613800138000")},
		user.Change{ID: 20, Name: new("100% sure")}, user.Change{ID: 21, Name: new("100 percent")}, user.Change{ID: 9, Name: new("Joann")},
		user.Change{ID: 30, Name: new("Annie"), Email: new("annie@example.com")})
	for text, want := range map[string]string{"ann": "[7 13 30]", "ANN ": "[7 13 30]", "13": "[13]", "+86138": "[138]", "100%": "[20]", "100": "[20 21]",
		"100_": "[]", "nobody": "[]", "": "[7 9 13 20 21 30 138]", `\`: "[]", "' or true --": "[]", "99999999999999999999": "[]"} {
		found, err := users.Find(t.Context(), text, 0, 100)
		w.Must(err)
		if got := fmt.Sprint(idsOf(found)); got != want {
			t.Errorf("%q finds %s, want %s", text, got, want)
		}
	}
	var seen []user.ID
	for after := user.ID(0); ; {
		page, err := users.Find(t.Context(), "ann", after, 1)
		w.Must(err)
		if len(page) == 0 {
			break
		}
		after = page[0].ID
		seen = append(seen, after)
	}
	if fmt.Sprint(seen) != "[7 13 30]" {
		t.Fatalf("pages show %v", seen)
	}
}

func idsOf(us []user.User) []user.ID {
	ids := []user.ID{}
	for _, u := range us {
		ids = append(ids, u.ID)
	}
	return ids
}

// Common and rare prefixes are searched in different ways, with the same result.
func TestFindCommonAndRare(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Exec(`insert into users (id, name, email) select n, 'Common ' || n, 'u' || n || '@example.com' from generate_series(1, 30000) n`)
	w.Exec(`analyze users`)
	found, err := users.Find(t.Context(), "common", 29_990, 100)
	w.Must(err)
	if got := fmt.Sprint(idsOf(found)); got != "[29991 29992 29993 29994 29995 29996 29997 29998 29999 30000]" {
		t.Fatalf("common: %s", got)
	}
	found, err = users.Find(t.Context(), "COMMON 2999", 29_994, 3)
	w.Must(err)
	if got := fmt.Sprint(idsOf(found)); got != "[29995 29996 29997]" {
		t.Fatalf("rare: %s", got)
	}
	if found, err = users.Find(t.Context(), "u4711@", 0, 3); err != nil || fmt.Sprint(idsOf(found)) != "[4711]" {
		t.Fatalf("address: %v %v", idsOf(found), err)
	}
	// The id itself counts besides a common beginning.
	w.Exec(`update users set name = '7' || name where id > 10`)
	if found, err = users.Find(t.Context(), "7", 0, 2); err != nil || fmt.Sprint(idsOf(found)) != "[7 11]" {
		t.Fatalf("an id that is a common beginning as well: %v %v", idsOf(found), err)
	}
	for _, bad := range []string{"\x00", "\xff", strings.Repeat("x", 100_000)} {
		if found, err := users.Find(t.Context(), bad, 0, 2); err != nil || len(found) > 0 {
			t.Fatalf("%.10q finds %v %v", bad, idsOf(found), err)
		}
	}
}

// The statement that searches a rare prefix must use the index, also when the plan is made
// before the text is known.
func TestFindUsesIndexes(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, email, phone) select n, 'user ' || n, 'u' || n || '@example.com', '+86' || (13000000000 + n) from generate_series(1, 50000) n`)
	w.Exec(`analyze users`)
	for column, index := range map[string]string{"name": "users_name", "email": "users_email", "phone": "users_phone"} {
		var plan string
		conn, err := w.SQL.Acquire(t.Context())
		w.Must(err)
		t.Cleanup(conn.Release)
		for _, sql := range []string{`set plan_cache_mode = force_generic_plan`, `set enable_seqscan = off`,
			`prepare find_` + column + ` (text, bigint) as ` + audiencedb.FindSQL(column)} {
			_, err = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			w.Must(err)
		}
		w.Must(conn.QueryRow(t.Context(), `explain (format json) execute find_`+column+` ('u4711', 10001)`, pgx.QueryExecModeSimpleProtocol).Scan(&plan))
		if !strings.Contains(plan, index) {
			t.Errorf("%s is searched without its index: %s", column, plan)
		}
	}
}
