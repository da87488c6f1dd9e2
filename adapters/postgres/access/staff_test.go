package access_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

func entry(action string) staff.Entry {
	return staff.Entry{Actor: staff.Actor{Label: "staff:1", Name: "Ada"}, Action: action, ObjectKind: "staff"}
}

func (w *fixture) member(email string, role staff.Role) staff.Member {
	w.Helper()
	m, err := accessdb.NewStaff(w.DB).InsertMember(w.Context(), staff.Member{Email: email, Role: role, PasswordHash: "h"}, staff.PasswordLink{}, nil, entry("staff.create"))
	w.Must(err)
	return m
}

// Several processes start concurrently and create one admin together.
func TestFirstAdminIsOne(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	var created atomic.Int64
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			ok, err := store.InsertFirstAdmin(t.Context(), staff.Member{Email: fmt.Sprintf("a%d@example.com", i), Role: staff.Admin}, entry("staff.create"))
			if err != nil {
				t.Error(err)
			}
			if ok {
				created.Add(1)
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from staff`); n != 1 || created.Load() != 1 {
		t.Errorf("%d admins, %d calls say they created one", n, created.Load())
	}
	if n := w.Number(`select count(*) from audit where action = 'staff.create' and object_id = (select id::text from staff)`); n != 1 {
		t.Errorf("%d lines in the audit log", n)
	}
	w.Exec(`update staff set disabled_at = now()`)
	if ok, err := store.InsertFirstAdmin(t.Context(), staff.Member{Email: "b@example.com", Role: staff.Admin}, entry("staff.create")); !ok || err != nil {
		t.Errorf("with a disabled admin only: %v, %v", ok, err)
	}
}

// Two admins who disable each other at the same moment must not both succeed.
func TestLastAdminStaysUnderConcurrency(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	for round := range 10 {
		w.Exec(`delete from staff`)
		a, b := w.member(fmt.Sprintf("a%d@example.com", round), staff.Admin), w.member(fmt.Sprintf("b%d@example.com", round), staff.Admin)
		var refused atomic.Int64
		var all sync.WaitGroup
		for _, m := range []staff.Member{a, b} {
			all.Go(func() {
				m.Role = staff.Viewer
				switch err := store.SaveMember(t.Context(), m, false, entry("staff.change")); {
				case errors.Is(err, staff.ErrLastAdmin):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := w.Number(`select count(*) from staff where role = 'admin'`); n != 1 || refused.Load() != 1 {
			t.Fatalf("%d admins are left, %d changes were refused", n, refused.Load())
		}
	}
}

func TestMembers(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	admin, ada := w.member("z@example.com", staff.Admin), w.member("ada@example.com", staff.Viewer)
	if _, err := store.InsertMember(t.Context(), staff.Member{Email: "ADA@example.com", Role: staff.Viewer}, staff.PasswordLink{}, nil, entry("x")); !errors.Is(err, staff.ErrEmailTaken) {
		t.Errorf("the same address in capitals: %v", err)
	}
	ada.Email = admin.Email
	if err := store.SaveMember(t.Context(), ada, false, entry("x")); !errors.Is(err, staff.ErrEmailTaken) {
		t.Errorf("somebody else's address: %v", err)
	}
	if n := w.Number(`select count(*) from audit where action = 'x'`); n != 0 {
		t.Errorf("%d refused changes are in the audit log", n)
	}
	ada.Email, ada.Shops = "ada@example.org", []int64{3, 1}
	w.Must(store.SaveMember(t.Context(), ada, false, entry("x")))
	got, err := store.MemberByEmail(t.Context(), "Ada@Example.org")
	w.Must(err)
	if got.ID != ada.ID || fmt.Sprint(got.Shops) != "[3 1]" {
		t.Errorf("member %+v", got)
	}
	list, err := store.Members(t.Context())
	w.Must(err)
	if len(list) != 2 || list[0].ID != ada.ID {
		t.Errorf("members %+v", list)
	}
	for _, err := range []error{store.SaveMember(t.Context(), staff.Member{ID: 99, Email: "q@example.com", Role: staff.Viewer}, false, entry("x")), func() error { _, err := store.Member(t.Context(), 99); return err }()} {
		if !errors.Is(err, staff.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	}
}

func TestSignIns(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	w.member("admin@example.com", staff.Admin)
	m := w.member("a@example.com", staff.Viewer)
	now := pgtest.Clock()
	id := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
	for n := range 3 {
		w.Must(store.InsertSignIn(t.Context(), staff.SignIn{ID: id(n), StaffID: m.ID, IP: "::1", CreatedAt: now.Add(time.Duration(n) * time.Second), LastSeenAt: now}, entry("staff.sign_in")))
	}
	present := func(n int) error { _, err := store.Present(t.Context(), id(n), now.Add(2*time.Minute)); return err }
	w.Must(present(0))
	if n := w.Number(`select count(*) from sign_ins where last_seen_at = $1`, now.Add(2*time.Minute)); n != 1 {
		t.Errorf("%d sign-ins were seen", n)
	}
	if ended, err := store.RevokeSignIns(t.Context(), staff.Revocation{StaffID: m.ID + 1, Only: id(0), At: now}); ended != 0 || err != nil {
		t.Errorf("somebody else's sign-in: %d, %v", ended, err)
	}
	if ended, err := store.RevokeSignIns(t.Context(), staff.Revocation{StaffID: m.ID, Only: "nonsense", At: now}); ended != 0 || err != nil {
		t.Errorf("nonsense: %d, %v", ended, err)
	}
	e := entry("staff.revoke_sign_in")
	if ended, err := store.RevokeSignIns(t.Context(), staff.Revocation{StaffID: m.ID, Except: id(1), At: now, Entry: &e}); ended != 2 || err != nil {
		t.Errorf("all but one: %d, %v", ended, err)
	}
	if err := present(0); !errors.Is(err, staff.ErrUnauthenticated) {
		t.Errorf("a revoked sign-in: %v", err)
	}
	w.Must(present(1))
	list, err := store.SignIns(t.Context(), m.ID)
	w.Must(err)
	if len(list) != 1 || list[0].ID != id(1) {
		t.Errorf("sign-ins %+v", list)
	}
	m.DisabledAt = &now
	w.Must(store.SaveMember(t.Context(), m, true, entry("staff.change")))
	if err := present(1); !errors.Is(err, staff.ErrUnauthenticated) {
		t.Errorf("a disabled member: %v", err)
	}
	m.DisabledAt = nil
	w.Must(store.SaveMember(t.Context(), m, false, entry("staff.change")))
	if err := present(1); !errors.Is(err, staff.ErrUnauthenticated) {
		t.Errorf("enabled again, the old sign-in holds again: %v", err)
	}
}

func TestSessions(t *testing.T) {
	w := newFixture(t)
	s := accessdb.NewSessions(w.DB)
	soon := time.Now().Add(time.Hour)
	w.Must(s.Commit("t1", []byte{1, 0, 2}, soon))
	w.Must(s.Commit("t1", []byte{3}, soon))
	w.Must(s.Commit("t2", []byte{4}, time.Now().Add(-time.Second)))
	if data, found, err := s.Find("t1"); !bytes.Equal(data, []byte{3}) || !found || err != nil {
		t.Errorf("t1: %v %v %v", data, found, err)
	}
	for _, token := range []string{"t2", "t3", ""} {
		if data, found, err := s.Find(token); found || err != nil || data != nil {
			t.Errorf("%q: %v %v %v", token, data, found, err)
		}
	}
	if n, err := s.DeleteExpired(t.Context(), 10); n != 1 || err != nil {
		t.Errorf("expired: %d %v", n, err)
	}
	w.Must(s.ExtendCtx(t.Context(), "t1", soon.Add(time.Second)))
	w.Must(s.ExtendCtx(t.Context(), "t3", soon))
	if n := w.Number(`select count(*) from sessions where token = 't1' and expiry = $1 and data = '\x03'`, soon); n != 1 {
		t.Error("a second more is stored, or something else")
	}
	w.Must(s.ExtendCtx(t.Context(), "t1", soon.Add(time.Hour)))
	if n := w.Number(`select count(*) from sessions where token = 't1' and expiry = $1 and data = '\x03'`, soon.Add(time.Hour)); n != 1 {
		t.Error("the end is not the later one")
	}
	w.Must(s.Delete("t1"))
	w.Must(s.Delete("t1"))
	if n := w.Number(`select count(*) from sessions`); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestKeys(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	service := &staff.Service{Store: store, Now: pgtest.Clock}
	var created atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ok, err := service.EnsureKey(t.Context(), "dbk_a-secret-from-the-environment", "automation", staff.Scopes())
			if err != nil {
				t.Error(err)
			}
			if ok {
				created.Add(1)
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from api_keys`); n != 1 || created.Load() != 1 {
		t.Errorf("%d keys, %d calls created one", n, created.Load())
	}
	if _, err := service.EnsureKey(t.Context(), "short", "x", nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a short secret: %v", err)
	}
	hash := staff.HashSecret("dbk_a-secret-from-the-environment")
	k, err := store.Key(t.Context(), hash)
	w.Must(err)
	if k.Name != "automation" || !k.Has(staff.ScopeAdmin) || k.Prefix != "dbk_a-se" || k.LastUsedAt != nil {
		t.Errorf("key %+v", k)
	}
	w.Must(store.TouchKey(t.Context(), k.ID))
	first := w.Number(`select extract(epoch from last_used_at)::bigint * 1000000 + extract(microseconds from last_used_at)::bigint from api_keys`)
	w.Must(store.TouchKey(t.Context(), k.ID))
	if again := w.Number(`select extract(epoch from last_used_at)::bigint * 1000000 + extract(microseconds from last_used_at)::bigint from api_keys`); again != first {
		t.Error("a key in use is written more than once a minute")
	}
	if _, err := store.Key(t.Context(), []byte("nothing")); !errors.Is(err, staff.ErrKeyNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	w.Must(store.RevokeKey(t.Context(), k.ID, pgtest.Clock(), entry("key.revoke")))
	w.Must(store.RevokeKey(t.Context(), k.ID, pgtest.Clock().Add(time.Hour), entry("key.revoke")))
	if n := w.Number(`select count(*) from audit where action = 'key.revoke'`); n != 1 {
		t.Errorf("revoking twice left %d lines", n)
	}
	if err := store.RevokeKey(t.Context(), 99, pgtest.Clock(), entry("x")); !errors.Is(err, staff.ErrKeyNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	if ok, err := service.EnsureKey(t.Context(), "dbk_a-secret-from-the-environment", "automation", staff.Scopes()); ok || err != nil {
		t.Errorf("a revoked key came back: %v %v", ok, err)
	}
	if k, _ = store.Key(t.Context(), hash); k.Usable(pgtest.Clock()) {
		t.Error("a revoked key is usable")
	}
}

func TestAuditRecords(t *testing.T) {
	w := newFixture(t)
	audit := accessdb.NewAudit(w.DB)
	w.Exec(`insert into audit (actor, action, object_kind, object_id, shop_number, at) values
		('staff:1 Ada', 'template.edit', 'template', '1', 10, '2026-01-01'), ('staff:12 Zoë', 'template.move', 'template', '11', 11, '2026-01-02'),
		('system', 'key.create', 'key', '1', null, '2026-01-03')`)
	at := func(s string) *time.Time {
		parsed, err := time.Parse(time.DateOnly, s)
		w.Must(err)
		return &parsed
	}
	for _, c := range []struct {
		name string
		q    staff.AuditQuery
		want string
	}{
		{"all", staff.AuditQuery{}, "321"}, {"actor", staff.AuditQuery{Actor: "staff:1"}, "1"}, {"actor with name", staff.AuditQuery{Actor: "staff:12 Zoë"}, "2"},
		{"action", staff.AuditQuery{Action: "template"}, "21"}, {"exact action", staff.AuditQuery{Action: "template.move"}, "2"}, {"not a prefix", staff.AuditQuery{Action: "temp"}, ""},
		{"object", staff.AuditQuery{ObjectKind: "template", ObjectID: "1"}, "1"}, {"from", staff.AuditQuery{From: at("2026-01-02")}, "32"},
		{"to", staff.AuditQuery{To: at("2026-01-02")}, "1"}, {"shops", staff.AuditQuery{Shops: []int64{10, 99}}, "1"}, {"before", staff.AuditQuery{BeforeID: 3}, "21"},
	} {
		c.q.Limit = 10
		list, err := audit.Records(t.Context(), c.q)
		w.Must(err)
		got := ""
		for _, r := range list {
			got += fmt.Sprint(r.ID)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	page, err := audit.Records(t.Context(), staff.AuditQuery{Limit: 2})
	w.Must(err)
	if len(page) != 2 {
		t.Errorf("a page of two has %d", len(page))
	}
}

func TestChangeShopIsRecorded(t *testing.T) {
	w := newFixture(t)
	_, err := w.Service.Create(t.Context(), pgtest.Actor, pgtest.Spec(time.Hour), "")
	w.Must(err)
	shops, err := w.Templates.Shops(t.Context())
	w.Must(err)
	s := shops[0]
	s.Name, s.Timezone = "Tea", "Asia/Shanghai"
	w.Must(w.Templates.ChangeShop(t.Context(), s, entry("shop.save")))
	shops, err = w.Templates.Shops(t.Context())
	w.Must(err)
	if len(shops) != 1 || shops[0] != s || w.Number(`select count(*) from audit where action = 'shop.save' and before is not null and before <> after`) != 1 {
		t.Errorf("shops %+v", shops)
	}
}

// A search for a text ends at a bound, and goes on from there.
func TestAuditSearchIsBounded(t *testing.T) {
	w := newFixture(t)
	w.Exec(`delete from audit`)
	w.Exec(`insert into audit (actor, action, object_kind, object_id, reason)
		select 'system', 'x.y', 'x', n, case when n % 7500 = 1 then 'the needle' when n % 2 = 0 then 'hay' else '' end from generate_series(1, 22501) n`)
	audit := accessdb.NewAudit(w.DB)
	var found []string
	pages, q := 0, staff.AuditQuery{Text: "NEEDLE", Limit: 10}
	for more := true; more; pages++ {
		page, err := audit.Search(t.Context(), q)
		w.Must(err)
		for _, r := range page.List {
			found = append(found, r.ObjectID)
		}
		more, q.BeforeID = page.More, page.Next
	}
	if len(found) != 4 || found[0] != "22501" || found[3] != "1" || pages != 3 {
		t.Errorf("found %v on %d pages", found, pages)
	}
	actions, err := audit.Actions(t.Context())
	w.Must(err)
	if len(actions) != 1 || actions[0] != "x.y" {
		t.Errorf("actions %v", actions)
	}
}

// An admin who is limited to shops cannot manage staff. The last admin who can manage staff
// stays, and the environment restores access when there is no such admin.
func TestTheLastAdminIsOfAllShops(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	chief, local := w.member("chief@example.com", staff.Admin), w.member("local@example.com", staff.Admin)
	local.Shops = []int64{10}
	w.Must(store.SaveMember(t.Context(), local, false, entry("staff.change")))
	for name, change := range map[string]func(*staff.Member){
		"limited":  func(m *staff.Member) { m.Shops = []int64{10} },
		"disabled": func(m *staff.Member) { m.DisabledAt = new(time.Now()) },
		"demoted":  func(m *staff.Member) { m.Role = staff.Operator },
	} {
		m := chief
		change(&m)
		if err := store.SaveMember(t.Context(), m, false, entry("staff.change")); !errors.Is(err, staff.ErrLastAdmin) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := staff.Member{Email: "chief@example.com", Role: staff.Admin, PasswordHash: "new"}
	if ok, err := store.InsertFirstAdmin(t.Context(), first, entry("staff.create")); ok || err != nil {
		t.Errorf("although there is one: %v, %v", ok, err)
	}
	w.Exec(`update staff set shops = '{10}', name = 'Chief' where id = $1`, chief.ID)
	w.Must(store.InsertSignIn(t.Context(), staff.SignIn{ID: "8c2b4c0e-0000-4000-8000-000000000001", StaffID: chief.ID, IP: "192.0.2.1",
		CreatedAt: time.Now(), LastSeenAt: time.Now()}, entry("staff.sign_in")))
	if ok, err := store.InsertFirstAdmin(t.Context(), first, entry("staff.create")); !ok || err != nil {
		t.Fatalf("with limited admins only: %v, %v", ok, err)
	}
	m, err := store.Member(t.Context(), chief.ID)
	w.Must(err)
	if len(m.Shops) != 0 || m.PasswordHash != "new" || m.Name != "Chief" || w.Number(`select count(*) from staff`) != 2 {
		t.Errorf("became %+v", m)
	}
	if list, err := store.SignIns(t.Context(), chief.ID); err != nil || len(list) != 0 {
		t.Errorf("still signed in: %+v, %v", list, err)
	}
}
