//go:build chaos

package chaos_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/delivery"
)

// TestPushFull is TestPushShort with the real programs. Workers are killed while they send to
// iPhones, Android phones and accounts in a mini program. Push services of browsers are left
// out, since the programs call only public addresses.
func TestPushFull(t *testing.T) {
	const kills = 4
	w := &system{size: &size{patience: 30 * time.Second}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.startServers()
	p := newPushPlatforms(t, w.random, 4, map[fault]int{refuse: 30, throttle: 30, dropBefore: 20, dropAfter: 30, hang: 3, late: 3})
	p.at("/push/").deck.open.Store(false)
	p.configure(w.stack.DB)
	w.fleet = launch(w.ctx, &fleet{t: t, stack: w.stack, providers: p.env}, 1, 2)
	w.crowd = &crowd{newClient(t, w.fleet, w.patience), &ledger{fates: map[reservation]reservationState{}}, w.random(3)}
	var users []int64
	for u := int64(2_000_001); len(users) < 2000; u++ {
		if u%deviceKinds != withBrowser {
			users = append(users, u)
		}
	}
	w.crowd.tell(w.ctx, users)
	d := w.crowd.publish(w.ctx, "Push", 24*time.Hour)
	for chunk := range slices.Chunk(users, callers) {
		var all sync.WaitGroup
		for _, u := range chunk {
			all.Go(func() { p.register(w, d, u) })
		}
		all.Wait()
	}
	w.crowd.move(w.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
	w.killSenders(kills, len(users), p.list)
	w.settled(d, 4*time.Minute)
	p.account(w, d, users)
	if n := w.fleet.kills("worker"); n < kills {
		t.Errorf("only %d workers were killed", n)
	}
}

// env makes a program send by the push services, each program at an address of its own.
func (p *pushPlatforms) env(program string) []string {
	front := p.front(program)
	return []string{"PROVIDERS_KEY=" + providersKey, "PROVIDERS_PRIVATE=yes", "APNS_KEY=" + base64.StdEncoding.EncodeToString(p.apple.Key), "APNS_KEY_ID=" + p.apple.KeyID, "APNS_TEAM_ID=" + p.apple.TeamID,
		"APNS_TOPIC=" + p.apple.Topic, "APNS_URL=" + front, "FCM_SERVICE_ACCOUNT=" + string(p.google.Account), "FCM_URL=" + front}
}

// register does the work of the user's app: it registers the devices and reserves.
func (p *pushPlatforms) register(w *system, d *drop, u int64) {
	for _, phone := range p.phonesOf(u) {
		body := map[string]any{"platform": phone.Platform, "token": phone.Token}
		if phone.App != "" {
			body["app"] = phone.App
		}
		p.must(w, call{method: "PUT", path: "/devices", user: u, body: body})
	}
	w.crowd.reserve(w.ctx, d, u, delivery.WebPush)
	if has(u, withAccount) {
		p.must(w, call{method: "PUT", path: fmt.Sprintf("/reservations/%d/consents/5", d.id), user: u})
	}
}

func (p *pushPlatforms) must(w *system, q call) {
	if r, final := w.crowd.send(w.ctx, q); !final || !r.ok() {
		p.t.Errorf("%s %s: answer %d %s", q.method, q.path, r.status, r.body)
	}
}
