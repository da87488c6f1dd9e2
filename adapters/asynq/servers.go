package asynq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/fault"

	queue "github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
)

const (
	// taskCheckInterval is the library's pause after an attempt that found no task, plus or
	// minus half of it. The next attempt then blocks until there is a task; see [waits].
	taskCheckInterval = 100 * time.Millisecond
	// janitorInterval is how often the library removes finished tasks that were kept. The
	// product keeps no finished tasks.
	janitorInterval        = time.Minute
	defaultShutdownTimeout = 20 * time.Second
)

// A QueueSpec says how this process works on one queue.
type QueueSpec struct {
	Name string
	// Concurrency is how many tasks of the queue run here at a time.
	Concurrency int
	// Servers share the concurrency. One server fetches one task per round trip to Redis, so a
	// busy queue needs several servers; 0 means 1.
	Servers int
}

// A Handler executes one task. The payload is the JSON of the task's payload struct. The
// handler's error decides:
//
//   - nil: done;
//   - a fault of kind Invalid, NotFound or Conflict: given up, archived;
//   - [fault.RetryAfter]: again after that time, not counted as an attempt, so
//     the handler itself must know a deadline;
//   - any other error, a panic included: again after 1, 2, 4, 8, 16 s, then archived.
//
// The context ends with the task's time-out and at the end of the shutdown time.
type Handler func(ctx context.Context, payload []byte) error

// ServersConfig configures [NewServers].
type ServersConfig struct {
	RedisURL string
	Queues   []QueueSpec
	Logger   *slog.Logger
	// ShutdownTimeout is how long Shutdown waits for running tasks before it
	// puts them back; 0 means 20 s. It must stay below the time after which
	// the process is killed.
	ShutdownTimeout time.Duration
	// Done, if set, is called after every execution, for metrics.
	Done func(name string, took time.Duration, err error)
	// Trace, if set, surrounds every execution: it may change the handler's
	// context, and done is called with the execution's error.
	Trace func(ctx context.Context, name string, headers map[string]string) (_ context.Context, done func(error))
}

// Servers executes the tasks of some queues in this process.
type Servers struct {
	config   ServersConfig
	redis    goredis.UniversalClient
	waits    *waits
	handlers map[string]Handler
	servers  []*queue.Server
	looking  sync.Once
	shutdown sync.Once
}

// NewServers returns servers that are not started yet.
func NewServers(config ServersConfig) (*Servers, error) {
	connections, blocked := 0, 1
	for _, spec := range config.Queues {
		if spec.Name == "" || spec.Concurrency < 1 {
			return nil, fmt.Errorf("queue %q needs a name and a concurrency of at least 1", spec.Name)
		}
		connections += spec.Concurrency + 4*max(1, spec.Servers)
		blocked += max(1, spec.Servers)
	}
	if config.ShutdownTimeout <= 0 {
		config.ShutdownTimeout = defaultShutdownTimeout
	}
	client, err := redisclient.New(config.RedisURL, connections)
	if err != nil {
		return nil, err
	}
	blocking, err := redisclient.New(config.RedisURL, blocked)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := &Servers{config: config, redis: client, waits: newWaits(blocking, config.Queues), handlers: map[string]Handler{}}
	client.AddHook(s.waits)
	for _, spec := range config.Queues {
		s.addServers(spec)
	}
	return s, nil
}

func (s *Servers) addServers(spec QueueSpec) {
	count := min(max(1, spec.Servers), spec.Concurrency)
	for i := range count {
		// The first servers get the remainder of the division.
		concurrency := (spec.Concurrency + count - 1 - i) / count
		s.servers = append(s.servers, queue.NewServerFromRedisClient(s.redis, queue.Config{
			Concurrency:              concurrency,
			Queues:                   map[string]int{spec.Name: 1},
			TaskCheckInterval:        taskCheckInterval,
			DelayedTaskCheckInterval: passPause,
			JanitorInterval:          janitorInterval,
			ShutdownTimeout:          s.config.ShutdownTimeout,
			RetryDelayFunc:           retryDelay,
			IsFailure:                countsAsAttempt,
			Logger:                   logAdapter{s.config.Logger.With("queue", spec.Name)},
			LogLevel:                 queue.WarnLevel,
		}))
	}
}

// Handle makes h execute the tasks called name. It panics when name has a
// handler already, and must not be called after [Servers.Start].
func (s *Servers) Handle(name string, h Handler) {
	if _, exists := s.handlers[name]; exists {
		panic("asynq: two handlers for task " + name)
	}
	s.handlers[name] = h
}

// Start begins to execute tasks and returns. If Redis is not available yet, the servers wait for
// Redis in the background.
func (s *Servers) Start() error {
	s.looking.Do(func() { go s.waits.look() })
	for _, server := range s.servers {
		if err := server.Start(queue.HandlerFunc(s.process)); err != nil {
			s.Shutdown()
			return fmt.Errorf("start task server: %w", err)
		}
	}
	return nil
}

// Shutdown stops fetching tasks, waits for running tasks up to the shutdown time, puts
// unfinished tasks back and closes the connections. Calling Shutdown again does nothing.
func (s *Servers) Shutdown() {
	s.shutdown.Do(func() {
		s.waits.stop()
		var wg sync.WaitGroup
		for _, server := range s.servers {
			wg.Go(server.Shutdown)
		}
		wg.Wait()
		if err := errors.Join(s.redis.Close(), s.waits.client.Close()); err != nil {
			s.config.Logger.Warn("closing the task servers' connections", "error", err)
		}
	})
}

func (s *Servers) process(ctx context.Context, t *queue.Task) error {
	started := time.Now()
	err := s.traced(ctx, t)
	if s.config.Done != nil {
		s.config.Done(t.Type(), time.Since(started), err)
	}
	if err == nil {
		return nil
	}
	id, _ := queue.GetTaskID(ctx)
	retried, _ := queue.GetRetryCount(ctx)
	log := s.config.Logger.With("task", id, "retried", retried, "error", err)
	switch {
	case !countsAsAttempt(err):
		log.DebugContext(ctx, "task asks to run later")
		return err
	case givesUp(err):
		log.ErrorContext(ctx, "task given up")
		return fmt.Errorf("%w: %w", err, queue.SkipRetry)
	default:
		log.WarnContext(ctx, "task failed")
		return err
	}
}

func (s *Servers) traced(ctx context.Context, t *queue.Task) error {
	if s.config.Trace == nil {
		return s.run(ctx, t)
	}
	ctx, done := s.config.Trace(ctx, t.Type(), t.Headers())
	err := s.run(ctx, t)
	if countsAsAttempt(err) {
		done(err)
	} else {
		done(nil) // asking to run later is no failure
	}
	return err
}

// run finds the handler by the task's exact name. The library's own multiplexer matches
// prefixes, so that the handler of v1 would also get v10.
func (s *Servers) run(ctx context.Context, t *queue.Task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in task %s: %v\n%s", t.Type(), p, debug.Stack())
		}
	}()
	handler, found := s.handlers[t.Type()]
	if !found {
		// Retried, because another version of this program may know it.
		return errors.New("no handler for task " + t.Type())
	}
	return handler(ctx, t.Payload())
}

func givesUp(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return true
	default:
		return false
	}
}

func countsAsAttempt(err error) bool {
	_, later := errors.AsType[*fault.RetryAfter](err)
	return !later
}
