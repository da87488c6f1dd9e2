package audience_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/domain/user/verification"
)

// phones are users with a provider of text messages that gives the answers the test sets, and
// the codes that the provider got.
type phones struct {
	*fixture
	*verification.Service
	sender *verification.Sender
	store  audiencedb.Verifications

	mu     sync.Mutex
	answer delivery.Result
	during func() // in a call
	codes  []string
	to     []string
}

func (*phones) Channel() delivery.Channel { return delivery.SMS }
func (*phones) ChunkSize() int            { return 1 }

func (p *phones) Send(_ context.Context, messages []delivery.Message) []delivery.Result {
	if p.during != nil {
		p.during()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes, p.to = append(p.codes, messages[0].Values()["code"]), append(p.to, messages[0].To.Phone)
	return []delivery.Result{p.answer}
}

func newPhones(t *testing.T) *phones {
	p := &phones{fixture: newFixture(t), answer: delivery.Result{Status: delivery.Delivered}}
	p.store = audiencedb.NewVerifications(p.DB)
	p.Service = &verification.Service{Store: p.store, Users: audiencedb.NewUsers(p.DB), Keys: verification.NewKeys("a secret"), Sends: func() bool { return true },
		Numbers: verification.Numbers{Usual: sms.Number, Forms: sms.Forms, Country: sms.CountryOf}}
	p.sender = &verification.Sender{Store: p.store, Keys: p.Keys, SMS: p}
	return p
}

// ask requests a code and has it sent, as if earlier requests were long ago.
func (p *phones) ask(id user.ID, phone string) (code string) {
	p.Helper()
	p.Exec(`update phone_verifications set created_at = created_at - interval '2 days'`)
	if _, err := p.Request(p.Context(), id, verification.Wish{Phone: phone}); err != nil {
		p.Fatal(err)
	}
	p.run()
	if len(p.codes) == 0 {
		return ""
	}
	return p.codes[len(p.codes)-1]
}

// run sends the last request.
func (p *phones) run() {
	p.Helper()
	p.Must(p.sender.Run(p.Context(), p.Number(`select max(id) from phone_verifications`)))
}

func (p *phones) user(id user.ID) user.User {
	p.Helper()
	u, err := audiencedb.NewUsers(p.DB).User(p.Context(), id)
	p.Must(err)
	return u
}

// verified reports the user's number, and whether it is verified.
func (p *phones) verified(id user.ID, phone string, want bool) {
	p.Helper()
	if u := p.user(id); u.Phone != phone || u.PhoneVerifiedAt.IsZero() == want {
		p.Errorf("user %d: %q, verified at %v; want %q, %v", id, u.Phone, u.PhoneVerifiedAt, phone, want)
	}
}

const firstPhone, secondPhone = "+14155552671", "+14155552672"

// A code makes the number to which it was sent the user's verified number. Every other change of
// the number revokes the verification.
func TestANumberIsVerifiedByItsCode(t *testing.T) {
	p := newPhones(t)
	p.Upsert(user.Change{ID: 1, Phone: new(firstPhone), Name: new("Ann")})
	p.verified(1, firstPhone, false)
	code := p.ask(1, "")
	if p.to[0] != firstPhone {
		t.Fatalf("sent to %v", p.to)
	}
	if phone, err := p.Confirm(t.Context(), 1, code); err != nil || phone != firstPhone {
		t.Fatalf("%s %v", phone, err)
	}
	p.verified(1, firstPhone, true)
	if _, err := p.Confirm(t.Context(), 1, code); !errors.Is(err, verification.ErrNoCode) {
		t.Errorf("a code that was used: %v", err)
	}
	since := p.user(1).PhoneVerifiedAt
	p.Upsert(user.Change{ID: 1, Phone: new(firstPhone), PhoneVerified: new(true), Name: new("Anna")})
	if got := p.user(1); !got.PhoneVerifiedAt.Equal(since) || got.Name != "Anna" {
		t.Errorf("the same number: verified at %v, want %v", got.PhoneVerifiedAt, since)
	}
	p.Upsert(user.Change{ID: 1, Phone: new(secondPhone)})
	p.verified(1, secondPhone, false)
	if code = p.ask(1, firstPhone); code == "" { // a number that is not the stored number
		t.Fatal("nothing was sent")
	}
	p.verified(1, secondPhone, false)
	_, err := p.Confirm(t.Context(), 1, code)
	p.Must(err)
	p.verified(1, firstPhone, true)
	p.Exec(`update users set phone = $1 where id = 1`, secondPhone) // a statement that does not name the verification
	p.verified(1, secondPhone, false)

	code = p.ask(2, secondPhone) // a user not known before
	_, err = p.Confirm(t.Context(), 2, code)
	p.Must(err)
	p.verified(2, secondPhone, true)

	// The shop's statements.
	for _, c := range []struct {
		change user.Change
		want   bool
	}{
		{user.Change{ID: 3, Phone: new(firstPhone), PhoneVerified: new(true)}, true},
		{user.Change{ID: 3, Name: new("Cem")}, true},
		{user.Change{ID: 3, Phone: new(secondPhone), PhoneVerified: new(true)}, true},
		{user.Change{ID: 3, PhoneVerified: new(false)}, false},
		{user.Change{ID: 3, PhoneVerified: new(true)}, true},
		{user.Change{ID: 3, Phone: new(""), PhoneVerified: new(true)}, false},
		{user.Change{ID: 3, PhoneVerified: new(true)}, false},
		{user.Change{ID: 3, Phone: new(firstPhone)}, false},
		{user.Change{ID: 4, PhoneVerified: new(true)}, false},
	} {
		p.Upsert(c.change)
		if u := p.user(c.change.ID); u.PhoneVerifiedAt.IsZero() == c.want {
			t.Errorf("%+v: verified at %v", c.change, u.PhoneVerifiedAt)
		}
		again, same, err := audiencedb.NewUsers(p.DB).Compare(t.Context(), []user.Change{c.change})
		p.Must(err)
		if again+same != 0 {
			t.Errorf("%+v: it would change something again", c.change)
		}
	}
}

// Attempts are counted before they are compared: of many concurrent attempts no more than five
// are compared. After five attempts the right code is refused, too.
func TestAttemptsAreCounted(t *testing.T) {
	p := newPhones(t)
	code := p.ask(1, firstPhone)
	wrong := fmt.Sprintf("%06d", (atoi(code)+1)%1_000_000)
	var counted, refused atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch _, err := p.Confirm(t.Context(), 1, wrong); {
			case errors.Is(err, verification.ErrWrong):
				counted.Add(1)
			case errors.Is(err, verification.ErrNoCode):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if counted.Load() != verification.MaxAttempts || refused.Load() != 20-verification.MaxAttempts {
		t.Errorf("%d attempts were compared, %d refused", counted.Load(), refused.Load())
	}
	if _, err := p.Confirm(t.Context(), 1, code); !errors.Is(err, verification.ErrNoCode) {
		t.Errorf("the code after five wrong ones: %v", err)
	}
	// Many enter the right code at once: it counts once.
	code = p.ask(1, firstPhone)
	var confirmed atomic.Int64
	for range 10 {
		all.Go(func() {
			if _, err := p.Confirm(t.Context(), 1, code); err == nil {
				confirmed.Add(1)
			} else if !errors.Is(err, verification.ErrNoCode) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if confirmed.Load() != 1 {
		t.Errorf("the code counted %d times", confirmed.Load())
	}
	p.verified(1, firstPhone, true)

	code = p.ask(2, secondPhone)
	p.Exec(`update phone_verifications set expires_at = clock_timestamp() where user_id = 2`)
	if _, err := p.Confirm(t.Context(), 2, code); !errors.Is(err, verification.ErrNoCode) {
		t.Errorf("ten minutes later: %v", err)
	}
	first := p.ask(2, secondPhone)
	last := p.ask(2, secondPhone)
	if _, err := p.Confirm(t.Context(), 2, first); first != last && !errors.Is(err, verification.ErrWrong) {
		t.Errorf("the code before the last: %v", err)
	}
	if _, err := p.Confirm(t.Context(), 3, last); !errors.Is(err, verification.ErrNoCode) {
		t.Errorf("another user's code: %v", err)
	}
}

func atoi(code string) (n int) {
	_, _ = fmt.Sscan("1"+code, &n) // with its zeros
	return n - 1_000_000
}

// Of concurrent requests one is stored. A user gets five codes an hour and ten a day. A number
// gets no more than that from all users together; a user is not told that other users requested
// them.
func TestCodesAreLimited(t *testing.T) {
	p := newPhones(t)
	var stored, refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := p.Request(t.Context(), 1, verification.Wish{Phone: firstPhone})
			switch later, _ := errors.AsType[*fault.RetryAfter](err); {
			case err == nil:
				stored.Add(1)
			case errors.Is(err, verification.ErrTooMany) && later != nil && later.After > 0 && later.After <= verification.AgainAfter:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if stored.Load() != 1 || refused.Load() != 7 {
		t.Fatalf("%d stored, %d refused", stored.Load(), refused.Load())
	}
	older := func(by string) {
		p.Exec(`update phone_verifications set created_at = created_at - $1::interval`, by)
	}
	request := func(id user.ID, phone string) error {
		_, err := p.Request(t.Context(), id, verification.Wish{Phone: phone})
		return err
	}
	for n := 2; n <= verification.PerHour; n++ {
		older("31 seconds")
		p.Must(request(1, firstPhone))
	}
	older("31 seconds")
	if err := request(1, secondPhone); !errors.Is(err, verification.ErrTooMany) {
		t.Errorf("a sixth code within the hour: %v", err)
	}
	// The number's limit is reached: the answers are the usual answers, and nothing is sent.
	p.Must(request(2, firstPhone))
	p.run()
	if len(p.codes) != 0 {
		t.Errorf("sent to %v", p.to)
	}
	if _, err := p.Confirm(t.Context(), 2, "123456"); !errors.Is(err, verification.ErrWrong) {
		t.Errorf("a code that was never sent: %v", err)
	}
	p.Must(request(3, "+114155552671")) // the same number, written in another way
	p.run()
	if len(p.codes) != 0 {
		t.Errorf("sent to %v", p.to)
	}
	older("1 hour")
	for n := verification.PerHour + 1; n <= verification.PerDay; n++ {
		p.Must(request(1, secondPhone))
		older("61 minutes")
	}
	if err := request(1, secondPhone); !errors.Is(err, verification.ErrTooMany) {
		t.Errorf("an eleventh code within the day: %v", err)
	}
	older("24 hours")
	p.Must(request(1, firstPhone))
	p.run()
	if len(p.codes) != 1 {
		t.Errorf("the next day %d codes were sent", len(p.codes))
	}
}

// A number gets no code if its owner has said STOP, or has proved to own it and opted out. The
// user who requests a code is not told.
func TestNumbersOfUsersWhoOptedOut(t *testing.T) {
	p := newPhones(t)
	users := audiencedb.NewUsers(p.DB)
	p.Upsert(user.Change{ID: 1, Phone: new(firstPhone)}, user.Change{ID: 2, Phone: new(secondPhone), OptOuts: new(uint8(4))})
	if code := p.ask(5, secondPhone); code == "" { // user 2 may have made the number up
		t.Error("an opt-out of a user who has not proved the number holds the code")
	}
	p.Upsert(user.Change{ID: 2, PhoneVerified: new(true)})
	p.Must(users.CarryOut(t.Context(), feedback.Stop, feedback.Reply{Provider: "twilio", From: firstPhone, ID: "SM1"}, []string{firstPhone}))
	p.codes = nil
	for _, phone := range []string{firstPhone, secondPhone} {
		if code := p.ask(5, phone); code != "" {
			t.Errorf("a code was sent to %v", p.to)
		}
		if _, err := p.Confirm(t.Context(), 5, "123456"); !errors.Is(err, verification.ErrWrong) {
			t.Errorf("%v", err)
		}
	}
	if _, err := p.Request(t.Context(), 1, verification.Wish{}); !errors.Is(err, verification.ErrOptedOut) {
		t.Errorf("the user who said STOP: %v", err)
	}
	p.Must(users.CarryOut(t.Context(), feedback.Start, feedback.Reply{Provider: "twilio", From: firstPhone, ID: "SM2"}, []string{firstPhone}))
	if code := p.ask(5, firstPhone); code == "" {
		t.Error("no code after START")
	}
	p.Must(users.Erase(t.Context(), 1, staff.Entry{Actor: staff.System(), Action: "user.erase"}))
	p.Exec(`update phone_verifications set created_at = created_at - interval '2 days'`)
	if _, err := p.Request(t.Context(), 1, verification.Wish{Phone: firstPhone}); !errors.Is(err, user.ErrErased) {
		t.Errorf("an erased user: %v", err)
	}
}

// A worker that dies before, during or after the call leaves a request that another worker takes
// over. The code that is sent last is valid, and no worker sends after its request was taken
// over.
func TestACodeSurvivesItsWorker(t *testing.T) {
	p := newPhones(t)
	_, err := p.Request(t.Context(), 1, verification.Wish{Phone: firstPhone})
	p.Must(err)
	id := p.Number(`select max(id) from phone_verifications`)
	lapse := func() { p.Exec(`update phone_verifications set lease_until = clock_timestamp() - interval '1 second'`) }
	due := func(want int) {
		t.Helper()
		ids, err := p.store.Due(t.Context(), 10)
		if err != nil || len(ids) != want {
			t.Errorf("%d are due, want %d, %v", len(ids), want, err)
		}
	}
	due(0) // its task has a moment
	p.Exec(`update phone_verifications set created_at = created_at - interval '3 seconds', due_at = due_at - interval '3 seconds'`)
	due(1)

	// It dies before the code is made, and comes back to find another worker's.
	dead, err := p.store.Take(t.Context(), id, time.Minute)
	p.Must(err)
	p.run()
	if len(p.codes) != 0 {
		t.Fatal("two workers had it")
	}
	due(0)
	lapse()
	due(1)
	// The worker dies in the call; meanwhile a third worker takes over.
	p.during = func() {
		p.during = nil
		lapse()
		if err := p.store.Arm(t.Context(), dead, []byte("late")); !errors.Is(err, delivery.ErrNoWork) {
			t.Errorf("a worker that lost its lease stores a code: %v", err)
		}
		p.run()
	}
	p.run()
	if len(p.codes) != 2 || p.Number(`select count(*) from phone_verifications where state = 'sent'`) != 1 {
		t.Fatalf("%d codes", len(p.codes))
	}
	due(0)
	// The third worker's code was sent first here, and was stored last.
	if _, err := p.Confirm(t.Context(), 1, p.codes[0]); err != nil {
		t.Errorf("the code that was stored last: %v", err)
	}

	// The provider is unavailable. The next try is later and has another code. Tries end with
	// the user's success, the pause of the channel, and the expiry of the request.
	p.answer = delivery.Result{}
	first := p.ask(2, secondPhone)
	due(0)
	p.Exec(`update phone_verifications set due_at = clock_timestamp() where user_id = 2`)
	p.Exec(`update channel_settings set paused = true where channel = 2`)
	due(0)
	p.Exec(`update channel_settings set paused = false where channel = 2`)
	due(1)
	if _, err := p.Confirm(t.Context(), 2, first); err != nil { // it had arrived all the same
		t.Error(err)
	}
	due(0)
	p.ask(3, "+14155552673")
	p.Exec(`update phone_verifications set due_at = clock_timestamp(), created_at = clock_timestamp() - interval '6 minutes' where user_id = 3`)
	due(0)
	if n := p.Number(`select count(*) from phone_verifications where user_id = 3 and state = 'failed' and reason = 'provider_error'`); n != 1 {
		t.Error("a request that is too old is not given up")
	}
}

// Recipients of text messages come with whether their numbers are verified.
func TestRecipientsAreVerified(t *testing.T) {
	p := newPhones(t)
	p.Upsert(user.Change{ID: 1, Phone: new(firstPhone), PhoneVerified: new(true)}, user.Change{ID: 2, Phone: new(secondPhone)})
	list, err := p.Batches.Recipients(t.Context(), delivery.SMS, []user.ID{1, 2}, false)
	if err != nil || len(list) != 2 || list[0].PhoneVerifiedAt.IsZero() || !list[1].PhoneVerifiedAt.IsZero() {
		t.Errorf("%+v %v", list, err)
	}
}
