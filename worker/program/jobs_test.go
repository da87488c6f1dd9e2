package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/musttest"
	"dropbell/worker/work"
)

// steps counts to its job's parameter, a step every tenth of a second.
type steps struct{}

func (steps) Step(_ context.Context, j job.Job) (job.Progress, error) {
	var to int64
	_ = json.Unmarshal(j.Params, &to)
	pause := time.NewTimer(100 * time.Millisecond)
	<-pause.C
	at := j.Done + 1
	return job.Progress{Cursor: json.RawMessage(fmt.Sprint(at)), Total: to, Done: at, Finished: at >= to}, nil
}

func runWithSteps(ctx context.Context, env map[string]string) error {
	cfg, err := config.Load(func(name string) string { return env[name] })
	if err != nil {
		return err
	}
	p, err := build(ctx, cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	defer p.Close()
	p.jobs.Runners["test.steps"] = steps{}
	return p.serve(ctx)
}

const stepsEnv = "DROPBELL_TEST_STEPS_WORKER"

// TestStepsWorker is not a test: it is the process that the next one kills.
func TestStepsWorker(t *testing.T) {
	raw := os.Getenv(stepsEnv)
	if raw == "" {
		return
	}
	var env map[string]string
	musttest.OK(t, json.Unmarshal([]byte(raw), &env))
	t.Log(runWithSteps(t.Context(), env))
}

func jobEnv(t *testing.T) (map[string]string, *job.Service, *pgx.Conn) {
	t.Helper()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	db, err := postgres.Open(t.Context(), env["DATABASE_URL"], postgres.Options{AppName: "test"})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return env, &job.Service{Store: workdb.NewJobs(db)}, conn
}

func startSteps(t *testing.T, s *job.Service, n int) job.Job {
	t.Helper()
	j, err := s.Start(t.Context(), staff.System(), job.New{Kind: "test.steps", Title: "Count", Params: json.RawMessage(fmt.Sprint(n))}, staff.Operate)
	musttest.OK(t, err)
	return j
}

func awaitJob(t *testing.T, s *job.Service, id int64, what string, ok func(job.Job) bool) job.Job {
	t.Helper()
	var last job.Job
	for end := time.Now().Add(localstack.Patience(t)); time.Now().Before(end); {
		var err error
		if last, err = s.Job(t.Context(), staff.System(), id); err != nil {
			t.Fatal(err)
		}
		if ok(last) {
			return last
		}
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
	t.Fatalf("%s: it stays %+v", what, last)
	return last
}

func serveSteps(t *testing.T, env map[string]string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runWithSteps(ctx, env) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A killed worker's job goes on elsewhere from where it was last saved, soon.
func TestKilledWorkersJobGoesOn(t *testing.T) {
	env, service, conn := jobEnv(t)
	j := startSteps(t, service, 30)
	raw, _ := json.Marshal(env)
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStepsWorker$")
	victim.Env = append(os.Environ(), stepsEnv+"="+string(raw))
	musttest.OK(t, victim.Start())
	awaitJob(t, service, j.ID, "the first worker", func(j job.Job) bool { return j.Done >= 3 })
	_ = victim.Process.Kill()
	_ = victim.Wait()
	killed := time.Now()
	left, err := service.Job(t.Context(), staff.System(), j.ID)
	if err != nil || left.State != job.Running {
		t.Fatalf("%+v: %v", left, err)
	}
	defer serveSteps(t, env)()
	awaitJob(t, service, j.ID, "the second worker", func(j job.Job) bool { return j.Done > left.Done })
	if took := time.Since(killed); took > 15*time.Second {
		t.Errorf("nobody took it over for %v", took)
	}
	if got := awaitJob(t, service, j.ID, "the end", func(j job.Job) bool { return j.State.Over() }); got.State != job.Done || got.Done != 30 {
		t.Errorf("%+v", got)
	}
	var errs int
	if err := conn.QueryRow(t.Context(), `select count(*) from outbox where topic = $1`, event.JobCreated).Scan(&errs); err != nil || errs != 0 {
		t.Errorf("%d events are left: %v", errs, err)
	}
}

// Redis that forgot everything, the event included, costs a second.
func TestJobStartsWithoutItsEvent(t *testing.T) {
	env, service, conn := jobEnv(t)
	j := startSteps(t, service, 2)
	if tag, err := conn.Exec(t.Context(), `delete from outbox where topic = $1`, event.JobCreated); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%v %v", tag, err)
	}
	defer serveSteps(t, env)()
	awaitJob(t, service, j.ID, "the sweep", func(j job.Job) bool { return j.State == job.Done })
}

func TestShutdownGivesJobsBack(t *testing.T) {
	env, service, conn := jobEnv(t)
	j := startSteps(t, service, 1000)
	stop := serveSteps(t, env)
	awaitJob(t, service, j.ID, "the worker", func(j job.Job) bool { return j.Done > 0 })
	stop()
	var free bool
	if err := conn.QueryRow(t.Context(), `select lease_token is null and attempts = 0 and state = 'running' from jobs where id = $1`, j.ID).Scan(&free); err != nil || !free {
		t.Errorf("free %v: %v", free, err)
	}
}

func TestJobsHaveTheirQueue(t *testing.T) {
	found := false
	for _, name := range asynq.QueueNames() {
		found = found || name == work.JobQueue().Name
	}
	if !found {
		t.Error("the queue of jobs is not among those that are registered and measured")
	}
}
