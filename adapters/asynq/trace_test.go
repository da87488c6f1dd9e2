package asynq

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/musttest"

	"go.opentelemetry.io/otel/propagation"
)

// TestTasksCarryTheTraceOfTheirCause queues tasks under traced and untraced contexts and checks
// the headers that their executions get.
func TestTasksCarryTheTraceOfTheirCause(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	s := startRedis(t)
	q := newQueue(t, s)
	traced := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
	unsampled := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent[:len(parent)-1] + "0"})
	for key, ctx := range map[int64]context.Context{1: traced, 2: unsampled, 3: t.Context()} {
		musttest.OK(t, q.Enqueue(ctx, task.Run(key, "app", 0, time.Time{})))
	}
	musttest.OK(t, q.Enqueue(traced, task.Run(4, "app", 0, time.Now().Add(time.Second))))
	type insideKey struct{}
	var mu sync.Mutex
	told, ended := map[string]map[string]string{}, map[string]error{}
	config := ServersConfig{RedisURL: s.URL, Queues: []QueueSpec{{Name: task.ChannelQueue("app"), Concurrency: 1}},
		Trace: func(ctx context.Context, name string, headers map[string]string) (context.Context, func(error)) {
			return context.WithValue(ctx, insideKey{}, headers), func(err error) {
				mu.Lock()
				defer mu.Unlock()
				ended[name] = err
			}
		}}
	failure := fault.ErrInvalid.Because("this task")
	start(t, config, map[string]Handler{task.Deliver: func(ctx context.Context, payload []byte) error {
		headers, _ := ctx.Value(insideKey{}).(map[string]string)
		mu.Lock()
		defer mu.Unlock()
		told[string(payload)] = headers
		return failure
	}})
	eventually(t, "all ran", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == 4 && ended[task.Deliver] != nil })
	mu.Lock()
	defer mu.Unlock()
	for payload, want := range map[string]map[string]string{
		`{"batch_id":"1","channel":"app"}`: {"traceparent": parent},
		`{"batch_id":"2","channel":"app"}`: nil,
		`{"batch_id":"3","channel":"app"}`: nil,
		`{"batch_id":"4","channel":"app"}`: {"tracelink": parent},
	} {
		if !maps.Equal(told[payload], want) {
			t.Errorf("%s ran with %v, want %v", payload, told[payload], want)
		}
	}
	if !errors.Is(ended[task.Deliver], failure) {
		t.Errorf("the end was told with %v", ended[task.Deliver])
	}
}

// TestAskingToRunLaterIsNoFailure in a trace either.
func TestAskingToRunLaterIsNoFailure(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	enqueue(t, q, task.Run(1, "app", 0, time.Time{}))
	ended := make(chan error, 1)
	config := ServersConfig{RedisURL: s.URL, Queues: []QueueSpec{{Name: task.ChannelQueue("app"), Concurrency: 1}},
		Trace: func(ctx context.Context, _ string, _ map[string]string) (context.Context, func(error)) {
			return ctx, func(err error) { ended <- err }
		}}
	start(t, config, map[string]Handler{task.Deliver: func(context.Context, []byte) error {
		return &fault.RetryAfter{Err: errors.New("busy"), After: time.Hour}
	}})
	if err := <-ended; err != nil {
		t.Errorf("told as %v", err)
	}
}
