package chaos_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	webpushgo "github.com/SherClockHolmes/webpush-go"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/push/webpush"
	"dropbell/adapters/push/wechat"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

// shortPatience is how long the senders of the short test wait for an answer: longer than a busy
// machine takes to answer.
const shortPatience = 10 * time.Second

// TestPushShort sends a drop's reminders to browsers, iPhones, Android phones and accounts in a
// mini program, through two senders and push services that fail in every way. Each user is
// reached on a device and recorded as sent. A device gets a message twice only if the first
// answer was lost, and then with the tag by which it replaces the first message. The balance
// sheet has no difference. The test runs no programs, since they call no push service of
// browsers on this machine; TestPushFull runs them with the other platforms.
func TestPushShort(t *testing.T) {
	t.Parallel()
	w := pgtest.New(t)
	s := &system{t: t, ctx: t.Context(), seed: seed(t), start: time.Now(), stack: &stack.Stack{SQL: w.SQL, DB: w.DB}, fleet: &fleet{}}
	p := newPushPlatforms(t, s.random, 2, map[fault]int{refuse: 3, throttle: 3, dropBefore: 2, dropAfter: 3, hang: 1, late: 1})
	mini := p.configure(w.DB)
	users := make([]int64, 150)
	for i := range users {
		users[i] = int64(i + 1)
	}
	tpl := w.Published(30 * time.Minute)
	p.registerIn(w, tpl, users)
	slot := w.CutSlot(tpl, 1, 25)
	keys, err := newVAPID()
	w.Must(err)
	var all sync.WaitGroup
	finished := func() bool {
		return w.Number(`select count(*) from slots where id = $1 and state = 'finished'`, slot.ID) == 1
	}
	limit := time.Now().Add(2 * time.Minute)
	for _, name := range []string{"first", "second"} {
		sender := p.sender(name, keys, mini)
		t.Cleanup(func() { _ = sender.Close() })
		d := w.Deliverer(&pgtest.MemoryQueue{}, sender)
		d.Policy.Base = 200 * time.Millisecond
		all.Go(func() {
			for !finished() && time.Now().Before(limit) {
				if err := d.Drain(t.Context(), delivery.WebPush); err != nil {
					t.Error(err)
				}
				if _, err := w.Slots.FinishSlots(t.Context()); err != nil {
					t.Error(err)
				}
				wait(20*time.Millisecond, t.Context().Done())
			}
		})
	}
	all.Wait()
	if !finished() {
		t.Fatal("the slot does not finish")
	}
	p.account(s, &drop{id: tpl.ID, slot: slot.ID, opensAt: tpl.OpensAt}, users)
}

// The kinds of users by their devices.
const (
	withIPhone = iota
	withAndroid
	withBrowser
	withAccount // in the mini program
	withAll
	deviceKinds
)

// has reports whether the user has a device of the kind.
func has(user int64, kind int64) bool {
	return user%deviceKinds == kind || user%deviceKinds == withAll
}

// registerIn stores the users' devices, reservations and consents.
func (p *pushPlatforms) registerIn(w *pgtest.Fixture, tpl template.Template, users []int64) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	w.Must(err)
	browser := user.PushSubscription{P256dh: base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), Auth: base64.RawURLEncoding.EncodeToString(make([]byte, 16))}
	front := p.front("")
	for _, u := range users {
		id := user.ID(u)
		if has(u, withBrowser) {
			browser.Endpoint = browserOf(front, u)
			w.Upsert(user.Change{ID: id, Push: &[]user.PushSubscription{browser}})
		}
		for _, d := range p.phonesOf(u) {
			_, err := w.Users.PutDevice(w.Context(), id, d, "")
			w.Must(err)
		}
		w.Reserve(tpl, id, pgtest.Reminders(delivery.WebPush, 5)...)
		if has(u, withAccount) {
			_, err := w.Reservations.SetConsent(w.Context(), tpl.ID, id, 1, true)
			w.Must(err)
		}
	}
}

// phonesOf returns the user's devices that are not browsers. A user with an account in the mini
// program accepts one message there.
func (p *pushPlatforms) phonesOf(u int64) (list []user.Device) {
	if has(u, withIPhone) {
		list = append(list, user.Device{Platform: user.IOS, Token: iPhoneOf(u)})
	}
	if has(u, withAndroid) {
		app := "" // half of the phones name their app
		if u%2 == 0 {
			app = p.google.Project
		}
		list = append(list, user.Device{Platform: user.Android, App: app, Token: androidOf(u)})
	}
	if has(u, withAccount) {
		list = append(list, user.Device{Platform: user.WeChat, App: p.wechat.AppID, Token: openIDOf(u)})
		p.wechat.Accept(openIDOf(u))
	}
	return list
}

// A vapid is a pair of keys for pushes to browsers.
type vapid struct{ private, public string }

func newVAPID() (v vapid, err error) {
	v.private, v.public, err = webpushgo.GenerateVAPIDKeys()
	return v, err
}

// sender returns a sender by the push services, which know it by the name.
func (p *pushPlatforms) sender(name string, keys vapid, mini int64) *push.Sender {
	front := p.front(name)
	browsers, err1 := webpush.New(webpush.Config{PublicKey: keys.public, PrivateKey: keys.private, Subject: "mailto:ops@shop.example", Timeout: shortPatience, AllowInsecure: true})
	patience := sender.Options{Timeout: shortPatience}
	apple, err2 := apns.New(apns.Config{Key: p.apple.Key, KeyID: p.apple.KeyID, TeamID: p.apple.TeamID, Topic: p.apple.Topic, URL: front, Options: patience})
	google, err3 := fcm.New(fcm.Config{Account: p.google.Account, URL: front, Options: patience, Configured: true})
	account, err4 := wechat.New(wechat.Config{AppID: p.wechat.AppID, Secret: p.wechat.Secret, Template: p.wechat.Template, Data: miniProgramData, URL: front, Options: patience})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			p.t.Fatal(err)
		}
	}
	s := push.New(push.Options{}, browsers, apple)
	s.Set([]push.Configured{{Provider: mini, Service: account}, {Provider: mini + 1, Service: google}})
	return s
}

// account compares the messages that the push services took with the stored outcomes.
func (p *pushPlatforms) account(w *system, d *drop, users []int64) {
	l := w.read(d.sending(), delivery.WebPush)
	if n := l.due.GetCardinality(); n != uint64(len(users)) || len(l.cause) > 0 {
		w.t.Errorf("%d of %d are due, %d expired", n, len(users), len(l.cause))
	}
	by := map[int64]map[string][]arrival{}
	arrivals := p.list()
	for _, a := range arrivals {
		if by[a.user] == nil {
			by[a.user] = map[string][]arrival{}
		}
		by[a.user][a.call] = append(by[a.user][a.call], a)
	}
	again, lost, unsure := 0, 0, 0
	cutOff := map[batchRun]map[int64]bool{} // users whose message a killed worker repeated
	for _, u := range users {
		switch sent := l.sent.Contains(uint64(u)); {
		case len(by[u]) == 0:
			lost++
			w.t.Errorf("user %d was not reached, and is recorded as sent: %v, else %s", u, sent, l.other[u])
		case sent:
		case u%deviceKinds == withAccount && strings.Contains(l.other[u], delivery.ReasonNoConsent) && w.unheard(by[u]["WeChat"][0]):
			unsure++
		default:
			w.t.Errorf("user %d was reached, and is recorded as %s", u, l.other[u])
		}
		for platform, list := range by[u] {
			slices.SortFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
			for i, a := range list[:len(list)-1] {
				again++
				if _, killed := w.fleet.killedAt(a.worker); killed && a.answer != concealed {
					h := batchRun{a.worker, l.batch[u]}
					if cutOff[h] == nil {
						cutOff[h] = map[int64]bool{}
					}
					cutOff[h][u] = true
				}
				if a.key != list[i+1].key {
					w.t.Errorf("%s: user %d was reached twice, under the names %q and %q", platform, u, a.key, list[i+1].key)
				}
				if !w.unheard(a) {
					w.t.Errorf("%s: user %d was reached twice without a cause: by %s at %s (%v) and by %s at %s", platform, u, a.worker, a.at.Format(clock), a.answer, list[i+1].worker, list[i+1].at.Format(clock))
				}
			}
		}
	}
	for h, list := range cutOff {
		if len(list) > pushesPerBatch {
			w.t.Errorf("%s was killed and %d messages of batch %d were repeated; %d are under way at once", h.worker, len(list), h.batch, pushesPerBatch)
		}
	}
	for _, f := range p.all {
		if left := f.deck.left(); len(left) > 0 && f.deck.open.Load() {
			w.t.Errorf("%s never did: %v", f.name, left)
		}
	}
	w.balance(d)
	w.say("seed %d\n%s", w.seed, table("users accounted for", len(users), "missed", lost, "messages at the push services", len(arrivals), "  repeated, each with its cause", again,
		"consents used up, with the answer lost", unsure, "kill -9 of workers", w.fleet.kills("worker"), "recovered after a failure", l.recovered))
}

// unheard reports whether the sender of the message may have failed to record the answer:
// because it did not get the answer, or because a worker was killed before recording it. The
// answer of a user with several devices is recorded after all devices have answered, and each
// device may take as long as a call may.
func (w *system) unheard(a arrival) bool {
	if a.answer != answered {
		return true
	}
	since, within := a.ended, recordedWithin
	if a.user%deviceKinds == withAll {
		since, within = a.at, recordedWithin+deviceKinds*pushTimeout
	}
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	for name, at := range w.fleet.killed {
		// The kill is noted a moment before it is carried out.
		if after := at.Sub(since); (a.worker == "" || name == a.worker) && after > -time.Second && after < within {
			return true
		}
	}
	return false
}

// pushesPerBatch is how many messages of a batch a program has under way at once: 4 calls of 20.
const pushesPerBatch = 4 * 20

// pushTimeout is how long a program waits for the answer of a push service.
const pushTimeout = 10 * time.Second

func (a answer) String() string { return [...]string{"answered", "concealed", "unheard"}[a] }
