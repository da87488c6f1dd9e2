package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"dropbell/adapters/telemetry"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func start(t testing.TB, o telemetry.Options) *telemetry.Tracing {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Service = "test"
	tracing, err := telemetry.Start(context.Background(), o)
	musttest.OK(t, err)
	return tracing
}

func shutdown(t testing.TB, tracing *telemetry.Tracing) {
	t.Helper()
	musttest.OK(t, tracing.Shutdown())
}

func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

type sender struct {
	answers []delivery.Result
	got     context.Context
}

func (s *sender) Channel() delivery.Channel { return delivery.Email }
func (s *sender) ChunkSize() int            { return 2 }
func (s *sender) Send(ctx context.Context, _ []delivery.Message) []delivery.Result {
	s.got = ctx
	return s.answers
}

func TestWithoutEndpointNothingIsThere(t *testing.T) {
	tracing := start(t, telemetry.Options{Ratio: 1})
	if tracing != nil {
		t.Fatal("tracing without an endpoint")
	}
	s := &sender{}
	if got := tracing.Sender(s); got != delivery.Sender(s) {
		t.Errorf("the sender is wrapped: %T", got)
	}
	if tracing.Queries() != nil {
		t.Error("statements are traced")
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	ctx, done := tracing.Request(r)
	done("GET", "/", 200)
	ctx2, done2 := tracing.Task(t.Context(), "task", map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	done2(nil)
	ctx3, done3 := tracing.Event(t.Context(), "event", nil)
	done3(errors.New("x"))
	if ctx != r.Context() || ctx2 != t.Context() || ctx3 != t.Context() {
		t.Error("a context was changed")
	}
	if err := errors.Join(tracing.Redis(nil), tracing.Shutdown()); err != nil {
		t.Error(err)
	}
}

func TestOneTraceFromRequestToProvider(t *testing.T) {
	c := collect(t)
	tracing := start(t, telemetry.Options{Endpoint: c.URL + "/", Ratio: 1})
	r := httptest.NewRequest(http.MethodPost, "/api/v1/reservations?token=secret", nil)
	r.RemoteAddr = "203.0.113.9:4000"
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00") // not sampled by the caller
	ctx, endRequest := tracing.Request(r)
	onTheWire := map[string]string{"traceparent": traceparent(ctx)}
	endRequest("POST", "/api/v1/reservations", 500)
	eventCtx, endEvent := tracing.Event(context.Background(), "timers template.published.v1", onTheWire)
	taskCtx, endTask := tracing.Task(context.Background(), "delivery.run.v1", map[string]string{"traceparent": traceparent(eventCtx)})
	endEvent(nil)
	s := &sender{answers: []delivery.Result{{Status: delivery.Permanent}, {Status: delivery.Throttled}}}
	subject := &delivery.Subject{Kind: delivery.KindReminder, TemplateID: 9007199254740993, Slot: 2, TemplateName: "Half price"}
	message := delivery.Message{To: &user.User{ID: 815, Email: "lin@example.test", Name: "Lin"}, Channel: delivery.Email, Subject: subject}
	tracing.Sender(s).Send(taskCtx, []delivery.Message{message, message})
	endTask(errors.New("provider away"))
	shutdown(t, tracing)

	const id = "0af7651916cd43dd8448eb211c80319c"
	request, event := c.find(t, "test", "POST /api/v1/reservations", within(id)), c.find(t, "test", "timers ", within(id))
	task, call := c.find(t, "test", "delivery.run.v1", within(id)), c.find(t, "test", "send email", within(id))
	for _, pair := range [][2]seen{{request, event}, {event, task}, {task, call}} {
		if !bytes.Equal(pair[0].SpanId, pair[1].ParentSpanId) {
			t.Errorf("%s is not below %s", pair[1].Name, pair[0].Name)
		}
	}
	for s, want := range map[*seen]otlp.Status_StatusCode{&request: otlp.Status_STATUS_CODE_ERROR, &event: otlp.Status_STATUS_CODE_UNSET,
		&task: otlp.Status_STATUS_CODE_ERROR, &call: otlp.Status_STATUS_CODE_ERROR} {
		if s.Status.GetCode() != want {
			t.Errorf("%s has status %v", s.Name, s.Status)
		}
	}
	for key, want := range map[string]string{"dropbell.channel": "email", "dropbell.messages": "2", "dropbell.template_id": "9007199254740993",
		"dropbell.slot": "2", "dropbell.kind": "reminder", "dropbell.permanent": "1", "dropbell.throttled": "1", "dropbell.delivered": "0"} {
		if got := call.attribute(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if trace.SpanContextFromContext(s.got).SpanID().String() != fmt.Sprintf("%x", call.SpanId) {
		t.Error("the sender does not run inside its span")
	}
	for _, s := range c.all() {
		for _, personal := range []string{"815", "lin@example.test", "Lin", "203.0.113.9", "secret"} {
			if strings.Contains(fmt.Sprint(s.Name, s.Attributes), personal) {
				t.Errorf("span %s tells %q", s.Name, personal)
			}
		}
	}
}

func TestATaskForLaterIsLinked(t *testing.T) {
	c := collect(t)
	tracing := start(t, telemetry.Options{Endpoint: c.URL, Ratio: 1})
	const cause = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	_, done := tracing.Task(context.Background(), "reminder.fire.v1", map[string]string{telemetry.LinkKey: cause})
	done(nil)
	shutdown(t, tracing)
	s := c.find(t, "test", "reminder.fire.v1", anySpan)
	if s.trace() == cause[3:35] || len(s.ParentSpanId) != 0 {
		t.Error("it is in the trace of its cause")
	}
	if len(s.Links) != 1 || fmt.Sprintf("%x", s.Links[0].TraceId) != cause[3:35] {
		t.Errorf("links: %v", s.Links)
	}
}

func TestWhatIsTraced(t *testing.T) {
	c := collect(t)
	tracing := start(t, telemetry.Options{Endpoint: c.URL, Ratio: 0})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, endRequest := tracing.Request(r) // its caller would like to be traced
	tracing.Sender(&sender{}).Send(ctx, nil)
	endRequest("GET", "/", 200)
	_, endEvent := tracing.Event(context.Background(), "untraced event", nil)
	endEvent(nil)
	tracing.Sender(&sender{}).Send(context.Background(), nil)
	ctx, endTask := tracing.Task(context.Background(), "own task", nil)
	tracing.Sender(&sender{}).Send(ctx, nil)
	endTask(nil)
	shutdown(t, tracing)
	c.find(t, "test", "own task", anySpan)
	if sends := c.named("send email"); len(sends) != 1 || sends[0].trace() != c.named("own task")[0].trace() {
		t.Errorf("traced calls: %v", sends)
	}
	if n := len(c.all()); n != 2 {
		t.Errorf("%d spans instead of 2: %v", n, c.all())
	}
}

func TestACollectorThatIsAwayIsOneLine(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var log bytes.Buffer
	tracing := start(t, telemetry.Options{Endpoint: server.URL, Ratio: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2000 { // several exports
		_, done := tracing.Task(context.Background(), "task", nil)
		done(nil)
	}
	shutdown(t, tracing)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
