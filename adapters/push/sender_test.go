package push_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// A service is a function that answers for each device.
type service func(ctx context.Context, m delivery.Message) []delivery.Result

func (s service) Push(ctx context.Context, m delivery.Message) []delivery.Result { return s(ctx, m) }
func (s service) Name() string                                                   { return "test" }
func (s service) Close() error                                                   { return nil }

func always(answers ...delivery.Result) service {
	return func(context.Context, delivery.Message) []delivery.Result { return answers }
}

func registered(n int) []delivery.Message {
	messages := sendertest.Messages(delivery.WebPush, n)
	for i := range messages {
		messages[i].To.Devices = []user.Device{{Platform: user.IOS, Token: "aa"}}
	}
	return messages
}

func TestOneOutcomeOfAllDevices(t *testing.T) {
	sent := delivery.Result{Status: delivery.Delivered}
	gone := delivery.Result{Status: delivery.Permanent, Detail: "gone"}
	down := delivery.Result{Detail: "down"}
	soon := delivery.Result{Status: delivery.Throttled, After: time.Second}
	later := delivery.Result{Status: delivery.Throttled, After: time.Minute}
	for name, c := range map[string]struct {
		services []push.Service
		want     delivery.Result
	}{
		"a phone and no browser":   {[]push.Service{always(), always(sent)}, sent},
		"one of three":             {[]push.Service{always(gone, down), always(sent)}, sent},
		"gone and down":            {[]push.Service{always(gone), always(down)}, down},
		"all gone":                 {[]push.Service{always(gone, gone)}, gone},
		"the longer pause":         {[]push.Service{always(soon, down), always(later)}, later},
		"a service that is absent": {[]push.Service{always()}, delivery.Result{Status: delivery.Permanent, Detail: "no push service is configured for the devices of this recipient"}},
	} {
		if got := push.New(push.Options{}, c.services...).Send(t.Context(), registered(1))[0]; got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// aPhone is a configured service of an app of its own on phones.
type aPhone struct {
	app
	number int
}

func appOf(number int) string { return "com.app" + strconv.Itoa(number) }

func (a aPhone) App() provider.App { return provider.App{Platform: user.IOS, Name: appOf(a.number)} }

// TestAPutOffHidesNoAnswer: FCM's quota puts a message off on one device, and the service of
// another device fails. The message has failed, and the circuit learns the failure, also if a
// configured service takes the message or puts it off.
func TestAPutOffHidesNoAnswer(t *testing.T) {
	held := delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Held: true, After: time.Minute, Detail: "held"}
	down := delivery.Result{Detail: "down"}
	pause := delivery.Result{Status: delivery.Throttled, After: time.Second, Detail: "pause"}
	gone := delivery.Result{Status: delivery.Permanent, Detail: "gone"}
	sent := delivery.Result{Status: delivery.Delivered, Detail: "sent"}
	for name, c := range map[string]struct {
		environment  []delivery.Result
		configured   []delivery.Result // about one device each
		want, beside string            // details
	}{
		"a failure":                        {[]delivery.Result{down, held}, nil, "down", ""},
		"a pause, which is shorter":        {[]delivery.Result{pause, held}, nil, "pause", ""},
		"both":                             {[]delivery.Result{held, down, pause}, nil, "pause", ""},
		"a phone that is gone":             {[]delivery.Result{gone, held}, nil, "held", "gone"},
		"another is reached":               {[]delivery.Result{held, down, sent}, nil, "sent", ""},
		"nothing but put-offs":             {[]delivery.Result{held, held}, nil, "held", ""},
		"a configured one reaches":         {[]delivery.Result{down, held}, []delivery.Result{sent}, "sent", "down"},
		"a configured one, a phone gone":   {[]delivery.Result{gone, held}, []delivery.Result{sent}, "sent", "gone"},
		"a configured one, only a put-off": {[]delivery.Result{held}, []delivery.Result{sent}, "sent", ""},
		"a configured one puts off":        {[]delivery.Result{down, held}, []delivery.Result{held}, "down", ""},
		"a configured one fails":           {[]delivery.Result{gone}, []delivery.Result{down}, "down", "gone"},
		"configured: a failure":            {nil, []delivery.Result{down, held}, "down", ""},
		"configured: a failure, put off":   {nil, []delivery.Result{held, down}, "down", ""},
		"configured: a pause":              {nil, []delivery.Result{held, pause, down}, "pause", ""},
		"configured: a phone that is gone": {nil, []delivery.Result{gone, held}, "held", ""},
		"configured: another is reached":   {nil, []delivery.Result{held, down, sent}, "sent", ""},
		"configured: nothing but put-offs": {nil, []delivery.Result{held, held}, "held", ""},
		"a put-off, and one that fails":    {[]delivery.Result{held}, []delivery.Result{down, held}, "down", ""},
		"a phone gone, and one that fails": {[]delivery.Result{gone}, []delivery.Result{held, down}, "down", "gone"},
		"a failure, and a longer pause":    {[]delivery.Result{down}, []delivery.Result{pause, held}, "down", ""},
	} {
		var asked []string
		s := push.New(push.Options{}, always(c.environment...))
		var list []push.Configured
		for i, answer := range c.configured {
			list = append(list, push.Configured{Provider: int64(i + 1), Service: aPhone{app{always(answer), &asked, "it", 0}, i}})
		}
		s.Set(list)
		messages := registered(1)
		messages[0].Consented = true
		messages[0].To.Devices = nil
		for i := range c.configured {
			messages[0].To.Devices = append(messages[0].To.Devices, user.Device{Platform: user.IOS, App: appOf(i), Token: "aa"})
		}
		if len(list) == 0 {
			messages[0].To.Devices = []user.Device{{Platform: user.IOS, Token: "aa"}}
		}
		got := s.Send(t.Context(), messages)[0]
		beside := delivery.Result{}
		if got.Beside != nil {
			beside = *got.Beside
		}
		if got.Detail != c.want || beside.Detail != c.beside || got.Held != (c.want == "held") || beside.Held {
			t.Errorf("%s: got %+v beside %+v, want %q beside %q", name, got, beside, c.want, c.beside)
		}
	}
}

// TestAnAccountInAMiniProgramThatTheShopDoesNotUse: the user of such an account is skipped,
// unless a browser or a phone could have been reached.
func TestAnAccountInAMiniProgramThatTheShopDoesNotUse(t *testing.T) {
	account, phone := user.Device{Platform: user.WeChat, App: "wx0123456789abcdef", Token: "aa"}, user.Device{Platform: user.IOS, Token: "aa"}
	for name, c := range map[string]struct {
		to      user.User
		skipped bool
	}{
		"an account":             {user.User{Devices: []user.Device{account, account}}, true},
		"a phone as well":        {user.User{Devices: []user.Device{account, phone}}, false},
		"a browser as well":      {user.User{Devices: []user.Device{account}, Push: make([]user.PushSubscription, 1)}, false},
		"a phone and no account": {user.User{Devices: []user.Device{phone}}, false},
	} {
		messages := registered(1)
		messages[0].To = &c.to
		r := push.New(push.Options{}, always()).Send(t.Context(), messages)[0]
		if r.Status != delivery.Permanent || r.Skip != c.skipped || r.Held != c.skipped || r.Unsent != c.skipped || (r.Reason == delivery.ReasonNoConsent) != c.skipped {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestParallelIsBounded(t *testing.T) {
	const limit = 3
	var (
		mu        sync.Mutex
		now, peak int
		full      = make(chan struct{})
	)
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		if now == limit && peak < limit {
			close(full)
		}
		peak = max(peak, now)
	}
	s := service(func(ctx context.Context, _ delivery.Message) []delivery.Result {
		count(1)
		defer count(-1)
		// No call leaves before the limit is reached, so that more would meet here.
		select {
		case <-full:
		case <-ctx.Done():
		}
		return []delivery.Result{{Status: delivery.Delivered}}
	})
	for i, r := range push.New(push.Options{Parallel: limit}, s).Send(t.Context(), registered(20)) {
		if r.Status != delivery.Delivered {
			t.Errorf("message %d: got %+v", i+1, r)
		}
	}
	if peak != limit {
		t.Errorf("up to %d pushes at once, want %d", peak, limit)
	}
}
