package delivery_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestRecipients reads ids that lie close together and ids that lie far apart,
// for every channel. The two kinds of ids are read by different statements.
func TestRecipients(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, email, phone, locale, timezone, push, devices)
		select id, 'Name '||id, id||'@x.example', '+49'||id, case when id % 2 = 0 then 'en' else 'zh-CN' end, 'Asia/Shanghai',
			jsonb_build_array(jsonb_build_object('endpoint', 'https://push.example/'||id, 'p256dh', 'p', 'auth', 'a')), case when id = 8 then '[{"platform":"ios","token":"t"}]'::jsonb else '[]' end
		from unnest('{1,2,3,5,8,1000,9000000000}'::bigint[]) as id`)
	w.Exec(`insert into users (id) values (4)`)
	for _, ids := range [][]user.ID{{1, 2, 3, 4, 6, 8}, {2, 4, 7, 1000, 9_000_000_000}, {8}, {6}} {
		for i := range 2 * delivery.Channels {
			c, named := delivery.Channel(i/2), i%2 == 1
			got, err := w.Batches.Recipients(t.Context(), c, ids, named)
			w.Must(err)
			if !slices.IsSortedFunc(got, func(a, b user.User) int { return int(a.ID - b.ID) }) {
				t.Errorf("%v on %s: not in ascending order", ids, c)
			}
			got = slices.DeleteFunc(got, func(u user.User) bool { return !slices.Contains(ids, u.ID) })
			if diff := cmp.Diff(recipients(ids, c, named), got); diff != "" {
				t.Errorf("%v on %s, named %v:\n%s", ids, c, named, diff)
			}
		}
	}
}

// recipients are the known users, with the data that the channel needs.
func recipients(ids []user.ID, c delivery.Channel, named bool) []user.User {
	list := []user.User{}
	for _, id := range ids {
		u := user.User{ID: id, Locale: "zh-CN", Timezone: "Asia/Shanghai"}
		if id%2 == 0 {
			u.Locale = "en"
		}
		if id == 4 {
			u = user.User{ID: id}
		}
		if named && id != 4 {
			u.Name = "Name " + id.String()
		}
		switch {
		case id == 6 || id == 7:
			continue
		case id == 4 && c == delivery.WebPush:
			u.Push = []user.PushSubscription{}
		case id == 4:
		case c == delivery.Email:
			u.Email = id.String() + "@x.example"
		case c == delivery.SMS:
			u.Phone = "+49" + id.String()
		case c == delivery.WebPush:
			u.Push = []user.PushSubscription{{Endpoint: "https://push.example/" + id.String(), P256dh: "p", Auth: "a"}}
			if id == 8 {
				u.Devices = []user.Device{{Platform: user.IOS, Token: "t"}}
			}
		}
		list = append(list, u)
	}
	return list
}

// TestContactsAreReadTogether: the users of many small batches are read together,
// and each batch finds its own recipients among them.
func TestContactsAreReadTogether(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, email, locale, timezone) select i, 'u' || i, 'u' || i || '@example.com', 'en', 'UTC' from generate_series(1, 200) i`)
	g := deliverydb.NewGroupedBatches(w.DB)
	defer g.Close()
	var all sync.WaitGroup
	for n := range 40 {
		for _, c := range []delivery.Channel{delivery.Email, delivery.Webhook} {
			all.Go(func() {
				ids := []user.ID{user.ID(n + 1), user.ID(n + 2), user.ID(n + 100), user.ID(n + 1000)} // the last is unknown
				known, err := g.Recipients(t.Context(), c, ids, n%2 == 0)
				if err != nil || !slices.IsSortedFunc(known, func(a, b user.User) int { return int(a.ID - b.ID) }) {
					t.Errorf("%v", err)
				}
				for _, id := range ids[:3] {
					i := slices.IndexFunc(known, func(u user.User) bool { return u.ID == id })
					if i < 0 || known[i].Locale != "en" || c == delivery.Email && known[i].Email != fmt.Sprint("u", id, "@example.com") ||
						n%2 == 0 && known[i].Name != fmt.Sprint("u", id) {
						t.Errorf("user %d on %s: %+v", id, c, known)
					}
				}
				if slices.ContainsFunc(known, func(u user.User) bool { return u.ID >= 1000 }) {
					t.Error("a user who does not exist is known")
				}
			})
		}
	}
	all.Wait()
}
