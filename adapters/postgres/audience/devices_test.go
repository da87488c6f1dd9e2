package audience_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func phone(token string) user.Device {
	return user.Device{Platform: user.Android, Token: token, AppVersion: "5.1", Locale: "zh-CN"}
}

func TestPhonesOfUsers(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	tokens := func(id user.ID) string {
		t.Helper()
		u, err := users.User(t.Context(), id)
		if errors.Is(err, user.ErrNotFound) {
			return "unknown"
		}
		w.Must(err)
		list := ""
		for _, d := range u.Devices {
			list += d.Token + " "
		}
		return list
	}
	put := func(id user.ID, d user.Device, replaced string) user.Device {
		t.Helper()
		stored, err := users.PutDevice(t.Context(), id, d, replaced)
		if w.Must(err); stored.Token != d.Token || stored.SeenAt.IsZero() || stored.AppVersion != d.AppVersion {
			t.Errorf("stored %+v", stored)
		}
		return stored
	}
	has := func(id user.ID, want string) {
		t.Helper()
		if got := tokens(id); got != want {
			t.Errorf("user %d has %q, want %q", id, got, want)
		}
	}
	put(1, phone("a"), "")
	put(1, phone("b"), "")
	has(1, "a b ")
	if u, _ := users.User(t.Context(), 1); u.Locale != "zh-CN" {
		t.Errorf("the language of a new user is %q", u.Locale)
	}

	announced := `select count(*) from outbox where topic = 'users.changed.v1'`
	before := w.Number(announced)
	put(1, phone("b"), "") // as at each start of the app
	if w.Number(announced) != before {
		t.Error("a phone that registers again with the same values was written again")
	}
	newer := phone("b")
	newer.AppVersion = "5.2"
	put(1, newer, "")
	has(1, "a b ")

	put(1, phone("c"), "a") // the token was renewed
	has(1, "b c ")
	put(2, phone("c"), "") // another user signs in on the same phone
	has(1, "b ")
	has(2, "c ")
	put(3, phone("d"), "c") // and a third phone, with a new token
	has(2, "")

	for n := range user.MaxDevices + 3 {
		put(4, phone(fmt.Sprint("t", n)), "")
	}
	if u, _ := users.User(t.Context(), 4); len(u.Devices) != user.MaxDevices || u.Devices[0].Token != "t3" {
		t.Errorf("kept %d phones from %s on", len(u.Devices), u.Devices[0].Token)
	}

	w.Must(users.RemoveDevice(t.Context(), 1, phone("c").DeviceID())) // not this user's
	has(3, "d ")
	w.Must(users.RemoveDevice(t.Context(), 1, phone("b").DeviceID()))
	w.Must(users.RemoveDevice(t.Context(), 1, phone("b").DeviceID()))
	w.Must(users.RemoveDevice(t.Context(), 99, phone("b").DeviceID()))
	has(1, "")
}

func TestAPhoneThatIsGone(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	first, err := users.PutDevice(t.Context(), 1, phone("a"), "")
	w.Must(err)
	again := phone("a")
	again.AppVersion = "6"
	second, err := users.PutDevice(t.Context(), 1, again, "")
	w.Must(err)
	for _, c := range []struct {
		gone user.Device
		want bool
	}{{first, false}, {second, true}, {second, false}} {
		if removed, err := users.RemoveGone(t.Context(), 1, c.gone); err != nil || removed != c.want {
			t.Errorf("seen %s: removed %v, want %v; %v", c.gone.SeenAt, removed, c.want, err)
		}
	}
}

// TestThePhonesApp is the app of the phone's last registration, also if nothing but the app has
// changed.
func TestThePhonesApp(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	for _, app := range []string{"", "shop-example", "shop-example", "other-example", ""} {
		d := phone("a")
		d.App = app
		stored, err := users.PutDevice(t.Context(), 1, d, "")
		w.Must(err)
		u, err := users.User(t.Context(), 1)
		if w.Must(err); stored.App != app || len(u.Devices) != 1 || u.Devices[0].App != app {
			t.Errorf("registered with %q: %+v, then %+v", app, stored, u.Devices)
		}
	}
}

func TestOnePhoneForTwoUsersAtOnce(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	var all sync.WaitGroup
	for id := user.ID(1); id <= 6; id++ {
		all.Go(func() {
			for _, token := range []string{"x", "y", "x"} {
				if _, err := users.PutDevice(t.Context(), id, phone(token), "y"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from users where devices @> '[{"token":"x"}]'`); n != 1 {
		t.Errorf("%d users have the same phone", n)
	}
}

func TestPhonesOfErasedUsers(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	_, err := users.PutDevice(t.Context(), 1, phone("a"), "")
	w.Must(err)
	w.Must(users.Erase(t.Context(), 1, staff.Entry{Action: "user.erase"}))
	if _, err := users.PutDevice(t.Context(), 1, phone("a"), ""); !errors.Is(err, user.ErrErased) {
		t.Errorf("got %v", err)
	}
	if n := w.Number(`select count(*) from users where devices <> '[]'`); n != 0 {
		t.Error("a phone of an erased user is kept")
	}
}

// TestUsersWaitForNoOtherUser: a session holds a user's row, and requests for that user wait.
// Phones and names of other users are stored meanwhile, also while an erasure waits for the
// first request.
func TestUsersWaitForNoOtherUser(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	put := func(id user.ID, token, replaced string) error {
		_, err := users.PutDevice(t.Context(), id, phone(token), replaced)
		return err
	}
	w.Must(put(1, "a", ""))
	w.Must(put(2, "b", ""))
	_, release := w.Hold(`select from users where id = 1 for update`)
	late := make(chan error, 3)
	go func() { late <- put(1, "a2", "") }()
	go func() { late <- put(1, "a3", "a") }()
	w.Blocked(2)
	go func() { late <- users.Erase(t.Context(), 3, staff.Entry{Action: "user.erase"}) }()
	w.Blocked(3) // now and then
	var took []time.Duration
	for id := user.ID(10); id < 60; id++ {
		start := time.Now()
		w.Must(put(id, fmt.Sprint("new ", id), ""))
		w.Must(put(id, fmt.Sprint("newer ", id), fmt.Sprint("new ", id)))
		w.Must(users.Upsert(t.Context(), []user.Change{{ID: id, Name: new("one of many")}}, staff.Entry{}))
		took = append(took, time.Since(start))
	}
	// The median: a slow machine may hold up some of them.
	if slices.Sort(took); took[len(took)/2] > time.Second {
		t.Errorf("others waited %v", took)
	}
	release()
	for range 3 {
		if err := <-late; err != nil && fault.KindOf(err) != fault.Unavailable { // refused, where the lock was held for long
			t.Error(err)
		}
	}
}

// TestARequestAboutALockedUserIsRefused instead of keeping a connection.
func TestARequestAboutALockedUserIsRefused(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	_, err := users.PutDevice(t.Context(), 1, phone("a"), "")
	w.Must(err)
	_, release := w.Hold(`select from users where id = 1 for update`)
	if _, err := users.PutDevice(postgres.LimitCalls(t.Context(), time.Minute), 1, phone("b"), ""); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	release()
	_, err = users.PutDevice(t.Context(), 1, phone("b"), "")
	w.Must(err)
}

// TestHoldersAreFoundByAnIndex: whenever a phone or a browser registers, its token or endpoint is
// looked up among all users.
func TestHoldersAreFoundByAnIndex(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, devices, push) select n, case when n % 2 = 0 then jsonb_build_array(jsonb_build_object('token', 't' || n)) else '[]' end,
		case when n % 2 = 0 then jsonb_build_array(jsonb_build_object('endpoint', 'e' || n)) else '[]' end from generate_series(1, 20000) n`)
	w.Exec(`analyze users`)
	for index, statement := range map[string]string{"users_devices": audiencedb.HoldersSQL, "users_push": audiencedb.BrowserHoldersSQL} {
		sql, args, err := pgx.NamedArgs{"id": 1, "token": "t4", "replaced": "", "endpoint": "e4"}.RewriteQuery(t.Context(), nil, "explain "+statement, nil)
		w.Must(err)
		rows, err := w.SQL.Query(t.Context(), sql, args...)
		w.Must(err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.Must(err)
		if plan := strings.Join(lines, "\n"); !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") {
			t.Error(plan)
		}
	}
}
