package verification_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/domain/user/verification"
)

// A fakeStore records what it is given.
type fakeStore struct {
	opened []verification.Opening
	hash   []byte
	ended  []string
	again  time.Duration
	tries  int
	armed  error
}

var request = verification.Request{ID: 3, User: 7, Phone: "+8613800138000"}

func (f *fakeStore) Open(_ context.Context, o verification.Opening) (verification.Opened, error) {
	f.opened = append(f.opened, o)
	return verification.Opened{Phone: o.Phone}, nil
}

func (f *fakeStore) Try(_ context.Context, _ user.ID, match func(verification.Request, []byte) bool) (string, error) {
	if !match(request, f.hash) {
		return "", verification.ErrWrong
	}
	return request.Phone, nil
}

func (f *fakeStore) Take(context.Context, int64, time.Duration) (verification.Taken, error) {
	f.tries++
	return verification.Taken{Request: request, Tries: f.tries, Locale: "zh-CN", Shop: "Tea"}, nil
}

func (f *fakeStore) Arm(_ context.Context, _ verification.Taken, hash []byte) error {
	f.hash = hash
	return f.armed
}

func (f *fakeStore) End(_ context.Context, _ verification.Taken, reason string, again time.Duration) error {
	f.ended, f.again = append(f.ended, reason), again
	return nil
}

func (f *fakeStore) Due(context.Context, int) ([]int64, error) { return nil, nil }

// fakeUsers knows user 7 as it is.
type fakeUsers user.User

func (f fakeUsers) User(_ context.Context, id user.ID) (user.User, error) {
	if id != 7 {
		return user.User{}, user.ErrNotFound
	}
	return user.User(f), nil
}

// A provider answers every message with one result, and keeps them.
type provider struct {
	answer   delivery.Result
	messages []delivery.Message
}

func (*provider) Channel() delivery.Channel { return delivery.SMS }
func (*provider) ChunkSize() int            { return 1 }
func (p *provider) Send(_ context.Context, messages []delivery.Message) []delivery.Result {
	p.messages = append(p.messages, messages...)
	return []delivery.Result{p.answer}
}

// limits admit or do not, and keep what they were told.
type limits struct {
	wait   time.Duration
	loads  []delivery.Load
	unused int
	calls  []delivery.Call
}

func (l *limits) Admit(_ context.Context, load delivery.Load) (time.Duration, string) {
	l.loads = append(l.loads, load)
	return l.wait, ""
}
func (l *limits) Unused(context.Context, delivery.Load) { l.unused++ }
func (l *limits) Report(_ context.Context, c delivery.Channel, call delivery.Call) {
	if c == delivery.SMS {
		l.calls = append(l.calls, call)
	}
}

func service(store *fakeStore, u user.User) *verification.Service {
	return &verification.Service{Store: store, Users: fakeUsers(u), Keys: verification.NewKeys("a secret, an older one"), Sends: func() bool { return true }, Countries: []string{"CN"},
		Numbers: verification.Numbers{
			Usual: func(s string) (string, error) {
				if len(s) < 9 {
					return "", errors.New("too short")
				}
				return strings.Replace(s, "+860", "+86", 1), nil
			},
			Forms:   func(s string) []string { return []string{s} },
			Country: func(s string) string { return map[bool]string{true: "CN", false: "DE"}[strings.HasPrefix(s, "+86")] }}}
}

func TestRequestsThatAreRefused(t *testing.T) {
	plain := user.User{ID: 7, Phone: "+8613800138000", Locale: "zh-CN"}
	for name, c := range map[string]struct {
		id   user.ID
		u    user.User
		wish verification.Wish
		want error
		sent string // the number that the code goes to
	}{
		"the stored number":            {7, plain, verification.Wish{}, nil, "+8613800138000"},
		"another number":               {7, plain, verification.Wish{Phone: "+8613800138001", Locale: "en"}, nil, "+8613800138001"},
		"another way to write it":      {7, plain, verification.Wish{Phone: "+86013800138001"}, nil, "+8613800138001"},
		"the stored number, otherwise": {7, user.User{ID: 7, Phone: "+86013800138000"}, verification.Wish{Phone: "+8613800138000"}, nil, "+86013800138000"},
		"a user who is not known":      {8, plain, verification.Wish{Phone: "+8613800138001"}, nil, "+8613800138001"},
		"no number":                    {8, plain, verification.Wish{}, verification.ErrNoNumber, ""},
		"opted out":                    {7, user.User{ID: 7, Phone: "+8613800138000", OptOuts: 4}, verification.Wish{}, verification.ErrOptedOut, ""},
		"opted out of something else":  {7, user.User{ID: 7, Phone: "+8613800138000", OptOuts: 3}, verification.Wish{}, nil, "+8613800138000"},
		"not a number":                 {7, plain, verification.Wish{Phone: "13800138000"}, fault.ErrInvalid, ""},
		"too short":                    {7, plain, verification.Wish{Phone: "+861380"}, fault.ErrInvalid, ""},
		"another country":              {7, plain, verification.Wish{Phone: "+4915112345678"}, fault.ErrInvalid, ""},
		"no language":                  {7, plain, verification.Wish{Locale: "zh_CN"}, fault.ErrInvalid, ""},
	} {
		store := &fakeStore{}
		_, err := service(store, c.u).Request(t.Context(), c.id, c.wish)
		switch {
		case c.want == nil && (err != nil || len(store.opened) != 1 || store.opened[0].Phone != c.sent || store.opened[0].User != c.id):
			t.Errorf("%s: %v, stored %+v", name, err, store.opened)
		case c.want != nil && (!errors.Is(err, c.want) || len(store.opened) > 0):
			t.Errorf("%s: %v, want %v; stored %+v", name, err, c.want, store.opened)
		}
	}
	off := service(&fakeStore{}, plain)
	off.Keys = verification.NewKeys(" , ")
	if _, err := off.Request(t.Context(), 7, verification.Wish{}); !errors.Is(err, delivery.ErrChannelUnavailable) {
		t.Errorf("without a key: %v", err)
	}
	off = service(&fakeStore{}, plain)
	off.Sends = func() bool { return false }
	if _, err := off.Request(t.Context(), 7, verification.Wish{}); !errors.Is(err, delivery.ErrChannelUnavailable) {
		t.Errorf("without a sender: %v", err)
	}
}

// The code of a message confirms the request for which it was sent, however it is
// typed. No other input confirms the request.
func TestACodeConfirmsItsRequest(t *testing.T) {
	store, sms := &fakeStore{}, &provider{answer: delivery.Result{Status: delivery.Delivered}}
	keys := verification.NewKeys("a secret")
	s := service(store, user.User{ID: 7})
	if _, err := s.Confirm(t.Context(), 7, "123456"); !errors.Is(err, verification.ErrWrong) {
		t.Errorf("before anything was sent: %v", err)
	}
	if err := (&verification.Sender{Store: store, Keys: keys, SMS: sms}).Run(t.Context(), 3); err != nil || !slices.Equal(store.ended, []string{""}) {
		t.Fatalf("%v, ended %v", err, store.ended)
	}
	m := sms.messages[0]
	code := m.Values()["code"]
	if len(code) != 6 || m.Content.Text != "【Tea】您的验证码是 "+code+"，10 分钟内有效。请勿告诉他人。" || m.Values()["minutes"] != "10" || m.To.Phone != request.Phone || m.Reference() != "" {
		t.Fatalf("sent %q to %s, %v", m.Content.Text, m.To.Phone, m.Values())
	}
	if strings.Contains(string(store.hash), code) || len(store.hash) != 32 {
		t.Errorf("stored is %x", store.hash)
	}
	wide := strings.Map(func(r rune) rune { return r - '0' + '０' }, code)
	for _, typed := range []string{code, " " + code[:3] + " " + code[3:] + " ", code[:3] + "-" + code[3:], wide} {
		if phone, err := s.Confirm(t.Context(), 7, typed); err != nil || phone != request.Phone {
			t.Errorf("%q: %s %v", typed, phone, err)
		}
	}
	for _, typed := range []string{"", code + "0", code[1:], "x" + code[1:], string(code[0]^1) + code[1:]} {
		if _, err := s.Confirm(t.Context(), 7, typed); !errors.Is(err, verification.ErrWrong) {
			t.Errorf("%q: %v", typed, err)
		}
	}
	for _, other := range []verification.Request{{ID: 4, User: 7, Phone: request.Phone}, {ID: 3, User: 8, Phone: request.Phone}, {ID: 3, User: 7, Phone: "+8613800138001"}} {
		if keys.Match(store.hash, other, code) {
			t.Errorf("the code confirms %+v", other)
		}
	}
	if verification.NewKeys("another").Match(store.hash, request, code) || verification.NewKeys("").Match(store.hash, request, code) {
		t.Error("the hash depends on no key")
	}
}

// A message that was not sent is tried again with a new code, unless the provider
// refuses it or it was tried too often. A message for which no provider is ready waits.
func TestCodesAreSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer delivery.Result
		reason string
		again  bool
	}{
		"no provider is ready":    {delivery.Result{Status: delivery.Throttled, Unsent: true, After: time.Second}, delivery.ReasonThrottled, true},
		"a fault of the provider": {delivery.Result{}, delivery.ReasonProvider, true},
		"asked to wait":           {delivery.Result{Status: delivery.Throttled, After: time.Minute}, delivery.ReasonThrottled, true},
		"refused":                 {delivery.Result{Status: delivery.Permanent}, delivery.ReasonRefused, false},
		"no budget":               {delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonBudget}, delivery.ReasonBudget, false},
	} {
		store, sms := &fakeStore{}, &provider{answer: c.answer}
		s := &verification.Sender{Store: store, Keys: verification.NewKeys("a secret"), SMS: sms}
		for range verification.MaxTries {
			if err := s.Run(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			last := len(store.ended) == verification.MaxTries && !c.answer.Unsent
			if got := store.again > 0; got != (c.again && !last) || store.ended[len(store.ended)-1] != c.reason || store.again < c.answer.After && got {
				t.Errorf("%s, try %d: %v, again in %v", name, len(store.ended), store.ended, store.again)
			}
		}
		if a, b := sms.messages[0], sms.messages[1]; a.Values()["code"] == b.Values()["code"] {
			t.Errorf("%s: the code is %s again", name, b.Values()["code"])
		}
	}
	store := &fakeStore{armed: delivery.ErrNoWork}
	sms := &provider{}
	if err := (&verification.Sender{Store: store, Keys: verification.NewKeys("a secret"), SMS: sms}).Run(t.Context(), 3); err != nil || len(sms.messages)+len(store.ended) > 0 {
		t.Errorf("another worker has the request: %v, %d sent", err, len(sms.messages))
	}
	store = &fakeStore{}
	if err := (&verification.Sender{Store: store, Keys: verification.NewKeys("a secret")}).Run(t.Context(), 3); err != nil || !slices.Equal(store.ended, []string{delivery.ReasonNoSender}) {
		t.Errorf("without a sender: %v, %v", err, store.ended)
	}
}

// While the circuit of text messages is open no code is sent, and waiting uses up no
// attempt. The result of a code counts for the circuit.
func TestCodesKeepToTheLimitsOfTheChannel(t *testing.T) {
	store, sms, l := &fakeStore{}, &provider{answer: delivery.Result{Detail: "timed out"}}, &limits{wait: time.Minute}
	s := &verification.Sender{Store: store, Keys: verification.NewKeys("a secret"), SMS: sms, Admission: l}
	if err := s.Run(t.Context(), 3); err != nil || store.tries+len(sms.messages)+len(store.ended)+l.unused > 0 || len(l.loads) != 1 || l.loads[0].Channel != delivery.SMS || l.loads[0].Messages != 1 {
		t.Fatalf("the circuit is open: %v, %d tries, %d sent, %+v", err, store.tries, len(sms.messages), l)
	}
	l.wait = 0
	if err := s.Run(t.Context(), 3); err != nil || len(sms.messages) != 1 || len(l.calls) != 1 || l.calls[0].OK || l.calls[0].Detail != "timed out" || l.unused != 0 {
		t.Errorf("a call that failed: %v, %+v", err, l)
	}
	sms.answer = delivery.Result{Status: delivery.Throttled, After: time.Hour}
	if err := s.Run(t.Context(), 3); err != nil || len(l.calls) != 2 || !l.calls[1].Throttled || l.calls[1].After >= verification.SendWithin {
		t.Errorf("asked to wait for an hour: %v, %+v", err, l)
	}
	store.armed = delivery.ErrNoWork
	if err := s.Run(t.Context(), 3); err != nil || len(l.calls) != 2 || l.unused != 1 {
		t.Errorf("another worker has the request: %v, %+v", err, l)
	}
}
