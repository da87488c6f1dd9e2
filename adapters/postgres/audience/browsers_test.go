package audience_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func browser(name string) user.PushSubscription {
	return user.PushSubscription{Endpoint: "https://push.example/" + name, P256dh: "key of " + name, Auth: "secret of " + name}
}

// A browser has one user: the user who registered it last. Registering it again replaces its keys,
// and the browsers that registered first make room for the newest.
func TestBrowsersOfUsers(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	has := func(id user.ID, want ...user.PushSubscription) {
		t.Helper()
		u, err := users.User(t.Context(), id)
		if err != nil && !errors.Is(err, user.ErrNotFound) {
			t.Fatal(err)
		}
		if fmt.Sprint(u.Push) != fmt.Sprint(want) {
			t.Errorf("user %d has %v, want %v", id, u.Push, want)
		}
	}
	put := func(id user.ID, p user.PushSubscription) {
		t.Helper()
		w.Must(users.PutBrowser(t.Context(), id, p))
	}
	put(1, browser("a"))
	put(1, browser("b"))
	put(1, browser("a")) // again: it becomes the newest
	has(1, browser("b"), browser("a"))
	renewed := browser("b")
	renewed.Auth = "another secret"
	put(1, renewed)
	has(1, browser("a"), renewed)
	announced := w.Number(`select count(*) from outbox where topic = 'users.changed.v1'`)
	put(2, browser("a")) // another user signs in in the same browser
	has(1, renewed)
	has(2, browser("a"))
	if n := w.Number(`select count(*) from outbox where topic = 'users.changed.v1'`); n != announced+2 {
		t.Errorf("%d changes of users were announced, want 2", n-announced)
	}
	for n := range user.MaxPush + 3 {
		put(3, browser(fmt.Sprint(n)))
	}
	if u, _ := users.User(t.Context(), 3); len(u.Push) != user.MaxPush || u.Push[0] != browser("3") {
		t.Errorf("kept %d browsers from %v on", len(u.Push), u.Push[0])
	}
	for _, id := range []user.ID{1, 99, 2, 2} { // another user's, an unknown user's, the user's own, and again
		w.Must(users.RemoveBrowser(t.Context(), id, browser("a").BrowserID()))
	}
	has(1, renewed)
	has(2)

	w.Must(users.Erase(t.Context(), 1, staff.Entry{Action: "user.erase"}))
	if err := users.PutBrowser(t.Context(), 1, browser("a")); !errors.Is(err, user.ErrErased) {
		t.Errorf("got %v", err)
	}
	has(1)
}

func TestOneBrowserForSeveralUsersAtOnce(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	var all sync.WaitGroup
	for id := user.ID(1); id <= 6; id++ {
		all.Go(func() {
			for _, name := range []string{"x", "y", "x"} {
				if err := users.PutBrowser(t.Context(), id, browser(name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from users where push @> '[{"endpoint":"https://push.example/x"}]'`); n != 1 {
		t.Errorf("%d users have the same browser", n)
	}
}
