package localstack

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack/child"
)

// Times that a PostgreSQL may take; recovery after a crash is the longest.
const (
	postgresStart = 90 * time.Second
	postgresStop  = 20 * time.Second
)

// Postgres is a running PostgreSQL server. It is not safe for concurrent use.
type Postgres struct {
	options Options
	program program
	account *account
	home    home
	port    int
	process *child.Process
	primary *Postgres // of which this is a standby; nil = it is none
}

// StartPostgres starts PostgreSQL with an empty database dropbell, or with the data in o.Dir. If
// this machine has no PostgreSQL, it installs one first. A server that an earlier start left
// running on the same data is stopped.
func StartPostgres(ctx context.Context, o Options) (*Postgres, error) {
	h, err := openHome(ctx, o, "postgres")
	if err != nil {
		return nil, err
	}
	p := &Postgres{options: o, home: h}
	if err := p.begin(ctx); err != nil {
		h.release()
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return p, nil
}

func (p *Postgres) begin(ctx context.Context) (err error) {
	if p.account, err = serverAccount(p.home.data); err != nil {
		return err
	}
	if p.program, err = findPostgres(ctx, p.options.Log, p.dataVersion()); err != nil {
		return err
	}
	if err := p.initialize(ctx); err != nil {
		return err
	}
	if err := p.endOrphan(ctx); err != nil {
		return err
	}
	return onFreePort(p.options, "PostgreSQL", func(port int) error {
		p.port = port
		return p.serve(ctx)
	})
}

// onFreePort tries again on another port when another program was faster to take the chosen
// port.
func onFreePort(o Options, server string, serve func(port int) error) error {
	for attempt := 1; ; attempt++ {
		port, err := o.choosePort(server)
		if err != nil {
			return err
		}
		err = serve(port)
		if err == nil || attempt == 5 || portFree(port) {
			return err
		}
	}
}

// URL returns the URL of the database dropbell. The owner of the database is the superuser
// dropbell, who needs no password.
func (p *Postgres) URL() string {
	return fmt.Sprintf("postgres://dropbell@127.0.0.1:%d/dropbell?sslmode=disable", p.port)
}

// Port is where the server listens on 127.0.0.1.
func (p *Postgres) Port() int { return p.port }

// serve starts the server on p.port and waits until it answers.
func (p *Postgres) serve(ctx context.Context) error {
	log, err := os.OpenFile(p.home.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	// The server outlives ctx, which only bounds the start.
	cmd := p.account.command(context.Background(), p.program.env, p.program.path+"/postgres", p.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	if p.process, err = child.Start(cmd, p.endSignal()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	if err := until(ctx, p.process.Done(), p.ready); err != nil {
		// There are no connections yet for which a graceful stop would wait.
		_ = p.process.Stop(context.WithoutCancel(ctx), syscall.SIGQUIT, postgresStop)
		return fmt.Errorf("%w\n%s", err, p.home.tail())
	}
	return nil
}

// endSignal stops a server whose data is kept in order, and another one at once.
func (p *Postgres) endSignal() syscall.Signal {
	if p.options.Dir == "" {
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}

func (p *Postgres) arguments() []string {
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(p.port),
		"unix_socket_directories=", "max_connections=400", "shared_buffers=256MB",
		"timezone=UTC", "log_timezone=UTC", "log_min_messages=warning",
	}
	if p.options.Durable {
		settings = append(settings, "fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_wal_size=2GB", "min_wal_size=1GB")
	} else {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=256MB")
	}
	args := []string{"-D", p.home.data}
	for _, s := range append(settings, p.options.Settings...) {
		args = append(args, "-c", s)
	}
	return args
}

// ready returns nil when the database dropbell accepts connections. In a new server it creates
// the database.
func (p *Postgres) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, p.URL())
	if err == nil {
		return c.Close(ctx)
	}
	if !errorCode(err, "3D000") { // invalid_catalog_name: the server is up, the database is not there
		return err
	}
	admin, err := pgx.Connect(ctx, withDatabase(p.URL(), "postgres"))
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	_, err = admin.Exec(ctx, "create database dropbell")
	return err
}

// Stop ends the server quickly but in order, and removes its temporary folder. For a stopped or
// killed server it only removes the folder.
func (p *Postgres) Stop(ctx context.Context) error {
	p.Resume() // a halted process would not handle the signal
	err := p.process.Stop(ctx, p.endSignal(), postgresStop)
	p.home.release()
	return err
}

// Kill ends every process of the server with SIGKILL, as a crash would. After Restart the server
// has only the data that had reached the operating system.
func (p *Postgres) Kill() error {
	defer p.process.Forget()
	pids := p.freeze()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended just now
	}
	ctx, cancel := context.WithTimeout(context.Background(), postgresStop)
	defer cancel()
	return child.Gone(ctx, pids...)
}

// Pause halts every process of the server: connections stay open and nothing
// answers.
func (p *Postgres) Pause() { p.freeze() }

// freeze halts the main process first, so that it starts no new process while freeze looks for
// its children and halts them. freeze returns the ids of all these processes.
func (p *Postgres) freeze() []int {
	main := p.process.PID()
	p.process.Signal(syscall.SIGSTOP)
	pids := append(child.Children(main), main)
	for _, pid := range pids[:len(pids)-1] {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // may have ended just now
	}
	return pids
}

// Resume undoes Pause.
func (p *Postgres) Resume() {
	for _, pid := range child.Children(p.process.PID()) {
		_ = syscall.Kill(pid, syscall.SIGCONT) // may have ended just now
	}
	p.process.Signal(syscall.SIGCONT)
}

// Restart stops the server if it still runs and starts it on the same port
// with the same data.
func (p *Postgres) Restart(ctx context.Context) error {
	p.Resume()
	if err := p.process.Stop(ctx, syscall.SIGINT, postgresStop); err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	return nil
}

// Done is closed when the server has ended.
func (p *Postgres) Done() <-chan struct{} { return p.process.Done() }
