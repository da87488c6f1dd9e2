package senders

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/inapp"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/worker/workertest"
)

type answering struct{ results []delivery.Result }

func (answering) Channel() delivery.Channel { return delivery.SMS }
func (answering) ChunkSize() int            { return 100 }
func (a answering) Send(context.Context, []delivery.Message) []delivery.Result {
	return a.results
}

func TestProviderAnswersAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := &Senders{App: &app.App{}, metrics: newMetrics(registry), calls: &calls{}}
	if _, wrapped := p.observed(inapp.Sender{}, 0).(measured); wrapped {
		t.Error("the app channel, which has no provider, is measured")
	}
	sms := p.observed(answering{[]delivery.Result{{Status: delivery.Delivered}, {Status: delivery.Permanent}, {Status: delivery.Delivered}, {}}}, 0)
	if got := sms.Send(t.Context(), make([]delivery.Message, 4)); len(got) != 4 {
		t.Fatalf("%d results", len(got))
	}
	for class, want := range map[string]float64{"delivered": 2, "permanent": 1, "transient": 1, "throttled": 0} {
		workertest.Expect(t, registry, want, "dropbell_provider_answers_total", "channel=sms", "class="+class)
	}
	workertest.Expect(t, registry, 1, "dropbell_provider_call_seconds", "channel=sms")
}

// TestEachProviderOfPushIsCountedOnce: answers of configured services do not count for the
// environment's service; the environment's own answers in the same call do.
func TestEachProviderOfPushIsCountedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := &Senders{App: &app.App{}, metrics: newMetrics(registry), calls: &calls{}}
	configured := delivery.Result{Status: delivery.Delivered, Via: 7, Judged: true}
	both, held := configured, delivery.Result{Status: delivery.Throttled, Held: true}
	both.Beside, held.Beside = &delivery.Result{Status: delivery.Permanent, Detail: "gone"}, &delivery.Result{Status: delivery.Permanent, Detail: "refused"}
	for _, answers := range [][]delivery.Result{{configured, configured}, {configured, both, held, {Status: delivery.Delivered}}} {
		p.observed(answering{answers}, 0).Send(t.Context(), make([]delivery.Message, len(answers)))
	}
	if _, list := p.calls.take(); len(list) != 1 || list[0].Provider != 0 || list[0].Calls != 1 || list[0].Messages != 3 || list[0].Failed != 2 {
		t.Errorf("counted %+v", list)
	}
}

// TestMessagesThatAreKeptBackAreNoAnswers: a provider that was not asked has not failed.
func TestMessagesThatAreKeptBackAreNoAnswers(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := &Senders{App: &app.App{}, metrics: newMetrics(registry), calls: &calls{}}
	held := delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Held: true, After: time.Minute, Detail: "not sent"}
	for _, answers := range [][]delivery.Result{{{Status: delivery.Delivered}, held, {Detail: "down"}, held}, {held, held}} {
		if got := p.observed(answering{answers}, 0).Send(t.Context(), make([]delivery.Message, len(answers))); !slices.Equal(got, answers) {
			t.Errorf("%+v became %+v", answers, got)
		}
		for _, answer := range answers {
			p.metrics.pushAnswered("fcm", answer)
		}
	}
	for class, want := range map[string]float64{"delivered": 1, "permanent": 0, "transient": 1, "throttled": 0} {
		workertest.Expect(t, registry, want, "dropbell_provider_answers_total", "channel=sms", "class="+class)
		if n, _ := workertest.Value(t, registry, "dropbell_push_answers_total", "service=fcm", "class="+class); n != want {
			t.Errorf("%v answers of FCM are %s, want %v", n, class, want)
		}
	}
	workertest.Expect(t, registry, 1, "dropbell_provider_call_seconds", "channel=sms")
	_, given := p.calls.take()
	if len(given) != 1 || given[0].Calls != 1 || given[0].Messages != 2 || given[0].Failed != 1 || given[0].Error != "down" {
		t.Errorf("stored are %+v", given)
	}
}
