package access_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	otp "github.com/pquerna/otp/totp"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/totp"
	"dropbell/domain/staff"
)

func (w *fixture) factor(m staff.Member, handle string) staff.Factor {
	w.Helper()
	store := accessdb.NewStaff(w.DB)
	id, err := store.NewFactorID(w.Context())
	w.Must(err)
	_, err = store.InsertFactor(w.Context(), staff.Factor{ID: id, StaffID: m.ID, Kind: staff.TOTP, Name: handle, Handle: []byte(handle), Secret: []byte("s"), Counter: 100},
		[][]byte{[]byte(handle + "1"), []byte(handle + "2")}, entry("staff.add_second_factor"))
	w.Must(err)
	list, err := store.Factors(w.Context(), m.ID)
	w.Must(err)
	return list[len(list)-1]
}

// atOnce calls f twelve times concurrently and returns the number of successes. f may fail only
// with refusal.
func atOnce(t *testing.T, refusal error, f func() error) (n int) {
	for _, err := range pgtest.Together(12, func(int) error { return f() }) {
		if err == nil {
			n++
		} else if !errors.Is(err, refusal) {
			t.Error(err)
		}
	}
	return n
}

// A code opens one sign-in, however many concurrent requests send the code.
func TestAProofIsUsedOnce(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	m := w.member("ada@example.com", staff.Admin)
	f := w.factor(m, "phone")
	for name, p := range map[string]staff.Proof{"a time step": {Factor: staff.Factor{ID: f.ID, Counter: 101, Secret: f.Secret}},
		"a recovery code": {RecoveryHash: []byte("phone1")}} {
		before := w.Number(`select count(*) from sign_ins`)
		n := atOnce(t, staff.ErrSecondFactor, func() error {
			in := staff.SignIn{ID: uuid.NewString(), StaffID: m.ID, IP: "::1", CreatedAt: time.Now(), LastSeenAt: time.Now()}
			return store.UseProof(t.Context(), m.ID, p, &in, entry("staff.sign_in"))
		})
		if opened := w.Number(`select count(*) from sign_ins`) - before; n != 1 || opened != 1 {
			t.Errorf("%s: %d times accepted, %d sign-ins", name, n, opened)
		}
	}
	for _, counter := range []int64{99, 100, 101} {
		p := staff.Proof{Factor: staff.Factor{ID: f.ID, Counter: counter}}
		if err := store.UseProof(t.Context(), m.ID, p, nil, entry("staff.confirm")); !errors.Is(err, staff.ErrSecondFactor) {
			t.Errorf("step %d after step 101: %v", counter, err)
		}
	}
	other := w.member("bob@example.com", staff.Admin)
	if err := store.UseProof(t.Context(), other.ID, staff.Proof{RecoveryHash: []byte("phone2")}, nil, entry("staff.confirm")); !errors.Is(err, staff.ErrSecondFactor) {
		t.Errorf("somebody else's recovery code: %v", err)
	}
	if n, err := store.RecoveryCodesLeft(t.Context(), m.ID); n != 1 || err != nil {
		t.Errorf("%d codes left, %v", n, err)
	}
}

// A member who must have a second factor keeps one factor when two concurrent requests remove
// two factors.
func TestTheLastFactorStays(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	m := w.member("ada@example.com", staff.Admin)
	list := []staff.Factor{w.factor(m, "a"), w.factor(m, "b"), w.factor(m, "c")}
	var removed atomic.Int64
	var all sync.WaitGroup
	for _, f := range list {
		all.Go(func() {
			err := store.RemoveFactor(t.Context(), f, true, entry("staff.remove_second_factor"))
			if err == nil {
				removed.Add(1)
			} else if !errors.Is(err, staff.ErrLastFactor) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := store.Factors(t.Context(), m.ID)
	if len(left) != 1 || removed.Load() != 2 || err != nil {
		t.Fatalf("%d left, %d removed, %v", len(left), removed.Load(), err)
	}
	if n, _ := store.RecoveryCodesLeft(t.Context(), m.ID); n != 2 {
		t.Errorf("%d recovery codes", n)
	}
	w.Must(store.RemoveFactor(t.Context(), left[0], false, entry("staff.remove_second_factor")))
	if n, _ := store.RecoveryCodesLeft(t.Context(), m.ID); n != 0 {
		t.Errorf("%d recovery codes outlive the last factor", n)
	}
	if err := store.RemoveFactor(t.Context(), left[0], false, entry("x")); !errors.Is(err, staff.ErrFactorNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if err := store.ReplaceRecoveryCodes(t.Context(), m.ID, [][]byte{{1}}, entry("x")); !errors.Is(err, staff.ErrFactorNotFound) {
		t.Errorf("codes without a factor: %v", err)
	}
}

// TestASecretOfAnotherAuthenticator: a secret is refused, with the same error as a secret whose
// key is missing, if it was copied into another row of the same or of another member, or if its
// row was given to another member.
func TestASecretOfAnotherAuthenticator(t *testing.T) {
	w := newFixture(t)
	codes, err := totp.New("a key with at least thirty-two bytes")
	w.Must(err)
	s := &staff.Service{Store: accessdb.NewStaff(w.DB), Codes: codes, Now: pgtest.Clock}
	enrol := func(m staff.Member) (id int64, secret string) {
		f, err := s.BeginCode(t.Context(), m)
		w.Must(err)
		shown, err := s.ShowCode(m, f)
		w.Must(err)
		_, err = s.AddCode(t.Context(), m, f, staff.FactorInput{Name: "Phone", Code: w.code(shown.Secret, -30*time.Second)})
		w.Must(err)
		return f.ID, shown.Secret
	}
	ada, bob := w.member("ada@example.com", staff.Admin), w.member("bob@example.com", staff.Operator)
	phone, _ := enrol(ada)
	stolen, secret := enrol(bob)
	confirm := func(m staff.Member) error {
		return s.Confirm(t.Context(), m, "", staff.Answer{Code: w.code(secret, 0)})
	}
	copied := `update second_factors set secret = (select secret from second_factors where id = $1) where id = $2`
	w.Exec(copied, stolen, phone)
	if err := confirm(ada); !errors.Is(err, staff.ErrSealed) {
		t.Errorf("copied into another member's row: %v", err)
	}
	tablet, _ := enrol(bob)
	w.Exec(copied, stolen, tablet)
	w.Exec(`update second_factors set staff_id = $1 where id = $2`, ada.ID, stolen)
	for name, m := range map[string]staff.Member{"copied into another row of the member": bob, "in a row that was given to another member": ada} {
		if err := confirm(m); !errors.Is(err, staff.ErrSealed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Exec(`update second_factors set staff_id = $1 where id = $2`, bob.ID, stolen)
	w.Must(confirm(bob))
}

// code returns the code that an authenticator app with the secret shows at now plus away.
func (w *fixture) code(secret string, away time.Duration) string {
	w.Helper()
	code, err := otp.GenerateCode(secret, pgtest.Clock().Add(away))
	w.Must(err)
	return code
}

// One authenticator is enrolled once, and a member has ten at most.
func TestEnrollingAtOnce(t *testing.T) {
	w := newFixture(t)
	store := accessdb.NewStaff(w.DB)
	m := w.member("ada@example.com", staff.Admin)
	add := func(handle string) error {
		id, err := store.NewFactorID(t.Context())
		w.Must(err)
		_, err = store.InsertFactor(t.Context(), staff.Factor{ID: id, StaffID: m.ID, Kind: staff.Passkey, Name: "x", Handle: []byte(handle), Secret: []byte("{}")}, [][]byte{[]byte(handle)}, entry("x"))
		return err
	}
	if n := atOnce(t, staff.ErrFactorTaken, func() error { return add("one") }); n != 1 {
		t.Errorf("enrolled %d times", n)
	}
	same := w.factor(m, "app") // a form that is sent twice
	w.Must(store.RemoveFactor(t.Context(), same, false, entry("x")))
	if n := atOnce(t, staff.ErrFactorTaken, func() error {
		_, err := store.InsertFactor(t.Context(), same, nil, entry("x"))
		return err
	}); n != 1 {
		t.Errorf("one form enrolled %d times", n)
	}
	w.Must(store.RemoveFactor(t.Context(), same, false, entry("x")))
	if n := w.Number(`select count(*) from recovery_codes`); n != 1 {
		t.Errorf("%d sets of recovery codes", n)
	}
	var handle atomic.Int64
	if n := atOnce(t, staff.ErrManyFactors, func() error { return add(string(rune('a' + handle.Add(1)))) }); n != staff.MaxFactors-1 {
		t.Errorf("%d more", n)
	}
	n, err := store.ResetFactors(t.Context(), m.ID, entry("staff.reset_second_factors"))
	if n != staff.MaxFactors || err != nil || w.Number(`select count(*) from second_factors`)+w.Number(`select count(*) from recovery_codes`) != 0 {
		t.Errorf("%d removed, %v", n, err)
	}
}

// TestPolicyOfANewInstallation: operators and admins must have a second factor.
func TestPolicyOfANewInstallation(t *testing.T) {
	fresh := newFixture(t)
	if p, err := accessdb.NewStaff(fresh.DB).Policy(t.Context()); p != staff.Required || err != nil {
		t.Errorf("a new installation: %q, %v", p, err)
	}
}
