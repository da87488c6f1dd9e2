package staff

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
)

func TestMay(t *testing.T) {
	for _, c := range []struct {
		role Role
		p    Permission
		shop int64
		ok   bool
	}{
		{"", View, 0, false}, {"king", View, 0, false}, {Viewer, View, 1, true}, {Viewer, ManageTemplates, 1, false},
		{Marketer, ManageTemplates, 1, true}, {Marketer, ManageTemplates, 0, true}, {Marketer, ManageTemplates, 2, false}, {Marketer, Operate, 0, false},
		{Operator, Operate, 0, true}, {Operator, ManageStaff, 0, false}, {Admin, ManageStaff, 0, true}, {Admin, View, 2, false},
	} {
		err := Actor{Role: c.role, Shops: []int64{1, 3}}.May(c.p, c.shop)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrForbidden) {
			t.Errorf("%q may %s in shop %d: %v", c.role, c.p, c.shop, err)
		}
	}
	if err := (Actor{Role: Viewer}).May(View, 77); err != nil {
		t.Errorf("without shops all are meant: %v", err)
	}
}

// Staff who are limited to some shops may not change objects that every shop shares.
func TestMayEverywhere(t *testing.T) {
	if err := (Actor{Role: Operator}).MayEverywhere(Operate); err != nil {
		t.Errorf("an operator of all shops: %v", err)
	}
	if err := (Actor{Role: Admin, Shops: []int64{1}}).MayEverywhere(Operate); !errors.Is(err, ErrEveryShop) {
		t.Errorf("an admin of one shop: %v", err)
	}
	if err := (Actor{Role: Marketer, Shops: []int64{1}}).MayEverywhere(Operate); !errors.Is(err, ErrForbidden) {
		t.Errorf("a marketer: %v", err)
	}
}

func TestMemberRules(t *testing.T) {
	good := MemberInput{Email: "ada@example.com", Role: Viewer}
	change := func(f func(*MemberInput)) MemberInput { in := good; f(&in); return in }
	for want, in := range map[string]MemberInput{
		"":       good,
		"email":  change(func(in *MemberInput) { in.Email = "Ada <ada@example.com>" }),
		"email ": change(func(in *MemberInput) { in.Email = strings.Repeat("a", 250) + "@example.com" }),
		"name":   change(func(in *MemberInput) { in.Name = strings.Repeat("é", 121) }),
		"role":   change(func(in *MemberInput) { in.Role = "Admin" }),
		"shops":  change(func(in *MemberInput) { in.Shops = []int64{1, 0} }),
	} {
		got := ""
		if f, ok := errors.AsType[*fault.Fields](in.check()); ok {
			got = f.List[0].Name
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("%+v breaks the rule of %q, want %q", in, got, strings.TrimSpace(want))
		}
	}
}

// The texts in the audit log and the list of keys must not open anything.
func TestNothingSecretIsShown(t *testing.T) {
	secret := NewSecret()
	k := keyOf(KeyInput{Name: " shop ", Scopes: []Scope{ScopeRead}}, secret, System())
	if len(k.Prefix) > len(KeyPrefix)+4 || !strings.HasPrefix(secret, k.Prefix) || k.Name != "shop" {
		t.Errorf("of %q the prefix %q is shown", secret, k.Prefix)
	}
	if short := keyOf(KeyInput{}, "0123456789abcdef", System()); len(short.Prefix) > 5 {
		t.Errorf("of a short secret %q is shown", short.Prefix)
	}
	m := Member{Email: "a@example.com", PasswordHash: "$argon2id$", Role: Admin}
	if s := m.Shown(); strings.Contains(s.Email+s.Name, "argon") {
		t.Errorf("shown %+v", s)
	}
}

// refusing fails the test that reaches the store.
type refusing struct {
	Store
	*testing.T
}

func (r refusing) InsertFirstAdmin(context.Context, Member, Entry) (bool, error) {
	r.Error("the store was asked")
	return false, nil
}

type plain struct{ Passwords }

func (plain) Hash(context.Context, string) (string, error) { return "", nil }

func TestFirstAdminNeedsAnAddressAndAPassword(t *testing.T) {
	s := &Service{Store: refusing{T: t}, Passwords: plain{}, Now: time.Now}
	for _, c := range [][2]string{{"", "seven grey herons"}, {"nobody", "seven grey herons"}, {"a@example.com", ""}, {"a@example.com", "grey herons"}, {"a@example.com", "password1234"}, {"a@example.com", strings.Repeat("x", MaxPassword+1)}} {
		if _, err := s.EnsureFirstAdmin(t.Context(), c[0], c[1]); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", c[0], err)
		}
	}
}

func TestNewUUID(t *testing.T) {
	id := newUUID()
	if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) || id == newUUID() {
		t.Errorf("%s is not a random UUID", id)
	}
}

// A member who may manage access could take every permission. Therefore an admin
// who is limited to shops may not manage access; such an admin could remove the
// limit.
func TestAccessIsNotForLimitedAdmins(t *testing.T) {
	s := &Service{Store: refusing{T: t}, Passwords: plain{}, Now: time.Now}
	by, ctx := Actor{Label: "staff:2", Role: Admin, Shops: []int64{10}}, t.Context()
	for name, try := range map[string]func() error{
		"Members":      func() error { _, err := s.Members(ctx, by); return err },
		"Member":       func() error { _, err := s.Member(ctx, by, 1); return err },
		"CreateMember": func() error { _, _, err := s.CreateMember(ctx, by, MemberInput{}); return err },
		"ChangeMember": func() error { _, err := s.ChangeMember(ctx, by, 2, MemberInput{}); return err },
		"Link":         func() error { _, _, err := s.NewPasswordLink(ctx, by, 2); return err },
		"Keys":         func() error { _, err := s.Keys(ctx, by); return err },
		"CreateKey":    func() error { _, _, err := s.CreateKey(ctx, by, KeyInput{}); return err },
		"RevokeKey":    func() error { return s.RevokeKey(ctx, by, 1, "") },
	} {
		if err := try(); !errors.Is(err, ErrEveryShop) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type comparing struct {
	plain
	n *int
}

func (c comparing) Matches(context.Context, string, string) (bool, error) { *c.n++; return false, nil }

// A text that is too long to be an address is not looked up, and takes as long as any
// other wrong password.
func TestSignInWithTooLongAnAddress(t *testing.T) {
	n := 0
	s := &Service{Store: refusing{T: t}, Passwords: comparing{n: &n}, Now: time.Now}
	if _, _, err := s.SignIn(t.Context(), strings.Repeat("a", MaxEmail)+"@example.com", "x", Client{}); !errors.Is(err, ErrSignIn) || n != 1 {
		t.Errorf("%v after %d comparisons", err, n)
	}
}

// Names obey the rules of all other names: no character hides or reverses the text after
// it.
func TestNamesOfStaffAndKeys(t *testing.T) {
	for _, name := range []string{"a\x00", "a\nb", "a\u202eb", "\xff"} {
		for what, err := range map[string]error{
			"member": MemberInput{Name: name, Email: "a@example.com", Role: Viewer}.check(),
			"key":    KeyInput{Name: name, Scopes: []Scope{ScopeRead}}.check(time.Now()),
		} {
			if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Name != "name" || f.List[0].Key != "rule.text" {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
}

// While passwords are off, nothing that has to do with one reaches the store.
func TestPasswordsSwitchedOff(t *testing.T) {
	s := &Service{Store: refusing{T: t}, Passwords: plain{}, Now: time.Now, PasswordsOff: true}
	ctx := t.Context()
	for name, try := range map[string]func() error{
		"sign-in": func() error { _, _, err := s.SignIn(ctx, "a@example.com", "seven grey herons", Client{}); return err },
		"link":    func() error { _, _, err := s.PasswordLink(ctx, "token"); return err },
		"set by link": func() error {
			_, _, err := s.SetPasswordByLink(ctx, "token", "seven grey herons", Client{})
			return err
		},
		"change": func() error {
			return s.ChangeOwnPassword(ctx, Member{ID: 1}, "seven grey herons", "eight grey herons", "")
		},
	} {
		if err := try(); !errors.Is(err, ErrPasswordsOff) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
