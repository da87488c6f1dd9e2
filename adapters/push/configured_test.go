package push_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// app is a configured service that answers a message with a consent by service, and then
// appends its name to asked.
type app struct {
	service
	asked *[]string
	name  string
	turn  time.Duration
}

func (a app) Calls(m delivery.Message) bool { return m.Consented }

func (a app) App() provider.App {
	return provider.App{Platform: user.WeChat, Name: "wx0123456789abcdef"}
}

func (a app) Turn(context.Context) time.Duration { return a.turn }

func (a app) Push(ctx context.Context, m delivery.Message) []delivery.Result {
	if !m.Consented {
		return []delivery.Result{{Status: delivery.Permanent, Skip: true, Held: true, Reason: delivery.ReasonNoConsent}}
	}
	*a.asked = append(*a.asked, a.name)
	return a.service(ctx, m)
}

// circuits has an open circuit for each provider in open, and records the reports.
type circuits struct {
	open    map[int64]time.Duration
	reports []delivery.Call
	ids     []int64
	unused  int
	asked   int
}

func (c *circuits) Admit(_ context.Context, _ delivery.Channel, id int64) time.Duration {
	c.asked++
	return c.open[id]
}
func (c *circuits) Unused(context.Context, delivery.Channel, int64) { c.unused++ }
func (c *circuits) Report(_ context.Context, _ delivery.Channel, id int64, call delivery.Call) {
	c.reports, c.ids = append(c.reports, call), append(c.ids, id)
}

// TestConfiguredServices: the shop's own services are asked in order, in addition to the
// environment's; services of all shops are asked if the shop has none. One consent is enough,
// and each service has its own circuit. Failures are Apart, and the outcome names the service
// that answered.
func TestConfiguredServices(t *testing.T) {
	used := delivery.Result{Status: delivery.Delivered, ConsentUsed: true}
	refused := delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonNoConsent, ConsentUsed: true}
	down := delivery.Result{Detail: "down"}
	for name, c := range map[string]struct {
		shop    string
		first   delivery.Result
		env     []push.Service
		open    int64
		asked   []string
		want    delivery.Status
		via     int64
		apart   bool
		reports int
	}{
		"the first takes it":      {"1", used, nil, 0, []string{"first"}, delivery.Delivered, 11, false, 1},
		"the first has none":      {"1", refused, nil, 0, []string{"first", "second"}, delivery.Delivered, 12, false, 2},
		"the first may have it":   {"1", down, nil, 0, []string{"first"}, delivery.Transient, 11, true, 1},
		"its circuit is open":     {"1", used, nil, 11, []string{"second"}, delivery.Delivered, 12, false, 1},
		"a shop of its own":       {"7", used, nil, 0, []string{"own"}, delivery.Delivered, 13, false, 1},
		"a phone is reached, too": {"1", down, []push.Service{always(delivery.Result{Status: delivery.Delivered})}, 0, []string{"first"}, delivery.Delivered, 0, false, 1},
	} {
		var asked []string
		k := &circuits{open: map[int64]time.Duration{}}
		if c.open != 0 {
			k.open[c.open] = time.Minute
		}
		s := push.New(push.Options{}, c.env...)
		s.Configurable(k, nil)
		s.Set([]push.Configured{{Provider: 13, Shop: 7, Service: app{always(used), &asked, "own", 0}}, {Provider: 12, Order: 2, Service: app{always(used), &asked, "second", 0}},
			{Provider: 11, Order: 1, Service: app{always(c.first), &asked, "first", 0}}})
		messages := registered(1)
		messages[0].Consented, messages[0].Subject.ShopNumber = true, c.shop
		r := s.Send(t.Context(), messages)[0]
		if r.Status != c.want || r.Via != c.via || r.Apart != c.apart || !slices.Equal(asked, c.asked) || len(k.reports) != c.reports {
			t.Errorf("%s: %+v, asked %v, %d reports", name, r, asked, len(k.reports))
		}
	}
}

// TestServesWhatIsConfigured: a message whose shop has no service has no sender, after the
// configuration was read again.
func TestServesWhatIsConfigured(t *testing.T) {
	s, looked := push.New(push.Options{}), 0
	var asked []string
	s.Configurable(nil, func() {
		if looked++; looked == 2 {
			s.Set([]push.Configured{{Provider: 1, Shop: 7, Service: app{always(), &asked, "own", 0}}})
		}
	})
	for i, want := range []bool{false, true, true} {
		if got := s.Serves(7); got != want {
			t.Errorf("look %d: serves %v", i+1, got)
		}
	}
	if s.Serves(1) || looked != 3 {
		t.Errorf("serves another shop, after %d looks", looked)
	}
	if got := s.Divide(nil, []user.ID{1, 2}, nil); len(got) != 1 || len(got[0]) != 2 {
		t.Errorf("divided into %v", got)
	}
}

// TestAnAppThatIsNewIsLookedFor: before messages are skipped for good because no service reaches
// the app, the configuration is read again, once a second for all messages.
func TestAnAppThatIsNewIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looked := push.New(push.Options{Parallel: 1}), 0
		var asked []string
		s.Configurable(nil, func() {
			if looked++; looked == 2 {
				s.Set([]push.Configured{{Provider: 1, Service: aPhone{app{always(delivery.Result{Status: delivery.Delivered}), &asked, "it", 0}, 1}}})
			}
		})
		for _, step := range []struct {
			after  time.Duration
			app    int
			status delivery.Status
			looked int
		}{
			{0, 1, delivery.Permanent, 1},
			{time.Second / 2, 1, delivery.Permanent, 1},
			{time.Second, 1, delivery.Delivered, 2},
			{time.Second, 1, delivery.Delivered, 2},
			{0, 2, delivery.Permanent, 3},
		} {
			<-time.After(step.after)
			messages := registered(20)
			for i := range messages {
				messages[i].Consented = true
				messages[i].To.Devices = []user.Device{{Platform: user.IOS, App: appOf(step.app), Token: "aa"}}
			}
			for _, r := range s.Send(t.Context(), messages) {
				if r.Status != step.status || r.Skip != (step.status == delivery.Permanent) || looked != step.looked {
					t.Errorf("%+v: %+v, looked %d times", step, r, looked)
				}
			}
		}
	})
}

// TestMessagesWaitForAnOpenCircuit: a message waits as long as the circuit has been open, half a
// minute at most. The circuit breaker is not asked for each message.
func TestMessagesWaitForAnOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []string
		k := &circuits{open: map[int64]time.Duration{}}
		s := push.New(push.Options{Parallel: 1})
		s.Configurable(k, nil)
		s.Set([]push.Configured{{Provider: 1, Service: app{always(delivery.Result{Status: delivery.Delivered}), &took, "it", 0}}})
		for _, step := range []struct {
			after, open time.Duration
			asked       int
			wait        time.Duration
		}{
			{0, 5 * time.Second, 1, 5 * time.Second},
			{4 * time.Second, 5 * time.Second, 0, 4 * time.Second},
			{time.Second, 5 * time.Second, 1, 5 * time.Second},
			{15 * time.Second, time.Second, 1, 20 * time.Second},
			{20 * time.Second, time.Second, 1, 30 * time.Second},
			{30 * time.Second, 0, 3, 0}, // it works again
			{0, time.Second, 1, time.Second},
			{time.Hour, time.Second, 1, time.Second}, // nothing is known of the hour
		} {
			<-time.After(step.after)
			k.asked, k.open[1] = 0, step.open
			messages := registered(3)
			for i := range messages {
				messages[i].Consented = true
			}
			for _, r := range s.Send(t.Context(), messages) {
				if r.After != step.wait || (r.Status == delivery.Delivered) != (step.wait == 0) {
					t.Errorf("%+v: %+v", step, r)
				}
			}
			if k.asked != step.asked {
				t.Errorf("%+v: the circuit breaker was asked %d times", step, k.asked)
			}
		}
		if len(took) != 3 {
			t.Errorf("took %d", len(took))
		}
	})
}

// TestTheQuotaComesBeforeTheCircuit: a message that waits for the quota of its service holds
// no probe of the circuit.
func TestTheQuotaComesBeforeTheCircuit(t *testing.T) {
	var took []string
	k := &circuits{}
	s := push.New(push.Options{})
	s.Configurable(k, nil)
	s.Set([]push.Configured{{Provider: 1, Service: app{always(), &took, "it", 7 * time.Second}}})
	messages := registered(1)
	messages[0].Consented = true
	if r := s.Send(t.Context(), messages)[0]; r.Status != delivery.Throttled || r.After != 7*time.Second || !r.Held || !r.Unsent || k.asked+len(took) > 0 {
		t.Errorf("%+v, asked the breaker %d times, took %v", r, k.asked, took)
	}
}
