package access_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/domain/staff"
)

func passwordSet(l staff.PasswordLink, m staff.Member) staff.Entry {
	e := entry("staff.password_set")
	e.ObjectID = fmt.Sprint(m.ID)
	return e
}

// Many browsers send the same link concurrently: one password is set, once.
func TestPasswordLinkServesOnce(t *testing.T) {
	w := newFixture(t)
	store, now := accessdb.NewStaff(w.DB), time.Now()
	m := w.member("ada@example.com", staff.Viewer)
	w.Must(store.SavePasswordLink(t.Context(), staff.PasswordLink{StaffID: m.ID, Purpose: staff.PasswordReset, ExpiresAt: now.Add(time.Hour)}, []byte("first"), entry("staff.password_link")))
	w.Must(store.SavePasswordLink(t.Context(), staff.PasswordLink{StaffID: m.ID, Purpose: staff.PasswordReset, ExpiresAt: now.Add(time.Hour)}, []byte("link"), entry("staff.password_link")))
	w.Must(store.InsertSignIn(t.Context(), staff.SignIn{ID: "8c2b4c0e-0000-4000-8000-000000000001", StaffID: m.ID, CreatedAt: now, LastSeenAt: now}, entry("staff.sign_in")))
	if _, err := store.UsePasswordLink(t.Context(), []byte("first"), now, "replaced", passwordSet); !errors.Is(err, staff.ErrPasswordLink) {
		t.Errorf("a link that was replaced: %v", err)
	}
	var set atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := store.UsePasswordLink(t.Context(), []byte("link"), now, "new", passwordSet)
			switch {
			case err == nil:
				set.Add(1)
			case !errors.Is(err, staff.ErrPasswordLink):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from audit where action = 'staff.password_set'`); set.Load() != 1 || n != 1 {
		t.Errorf("set %d times, recorded %d times", set.Load(), n)
	}
	if n := w.Number(`select count(*) from staff where password_hash = 'new'`); n != 1 {
		t.Error("the password is not the new one")
	}
	if list, err := store.SignIns(t.Context(), m.ID); err != nil || len(list) != 0 {
		t.Errorf("still signed in: %+v, %v", list, err)
	}
}

// A link does not outlive its time, the account, or the address it went to.
func TestPasswordLinkThatDoesNotCount(t *testing.T) {
	w := newFixture(t)
	store, now := accessdb.NewStaff(w.DB), time.Now()
	w.member("chief@example.com", staff.Admin)
	for name, end := range map[string]func(m staff.Member){
		"expired":  func(m staff.Member) { w.Exec(`update password_links set expires_at = $1`, now) },
		"disabled": func(m staff.Member) { w.Exec(`update staff set disabled_at = now() where id = $1`, m.ID) },
		"enabled again": func(m staff.Member) {
			m.DisabledAt = &now
			w.Must(store.SaveMember(t.Context(), m, true, entry("staff.change")))
			m.DisabledAt = nil
			w.Must(store.SaveMember(t.Context(), m, false, entry("staff.change")))
		},
		"moved to another address": func(m staff.Member) {
			m.Email = "other@example.com"
			w.Must(store.SaveMember(t.Context(), m, false, entry("staff.change")))
		},
	} {
		m, err := store.InsertMember(t.Context(), staff.Member{Email: "ada@example.com", Role: staff.Viewer},
			staff.PasswordLink{Purpose: staff.Invitation, ExpiresAt: now.Add(time.Hour)}, []byte("link"), entry("staff.create"))
		w.Must(err)
		if m, err = store.Member(t.Context(), m.ID); err != nil || m.InvitedUntil == nil {
			t.Fatalf("invited until %v, %v", m.InvitedUntil, err)
		}
		if _, _, err := store.PasswordLink(t.Context(), []byte("link"), now); err != nil {
			t.Errorf("%s, before: %v", name, err)
		}
		end(m)
		if _, _, err := store.PasswordLink(t.Context(), []byte("link"), now); !errors.Is(err, staff.ErrPasswordLink) {
			t.Errorf("%s, looked at: %v", name, err)
		}
		if _, err := store.UsePasswordLink(t.Context(), []byte("link"), now, "new", passwordSet); !errors.Is(err, staff.ErrPasswordLink) {
			t.Errorf("%s, used: %v", name, err)
		}
		w.Exec(`delete from staff where id = $1`, m.ID)
	}
	disabled := w.member("former@example.com", staff.Viewer)
	w.Exec(`update staff set disabled_at = now() where id = $1`, disabled.ID)
	for id, want := range map[int64]error{disabled.ID: staff.ErrDisabled, 99: staff.ErrNotFound} {
		l := staff.PasswordLink{StaffID: id, Purpose: staff.PasswordReset, ExpiresAt: now.Add(time.Hour)}
		if err := store.SavePasswordLink(t.Context(), l, []byte("x"), entry("staff.password_link")); !errors.Is(err, want) {
			t.Errorf("a link for %d: %v", id, err)
		}
	}
}
