package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/cell"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/doctor"
	"dropbell/domain/forecast"
	"dropbell/migrations"
)

var errDoctorUsage = errors.New("usage: dropbell doctor [-json] [-web N] [-worker N]; see dropbell --help")

// doctorOf examines the installation of the environment.
type doctorOf struct {
	getenv func(string) string
	// now is this machine's clock, with which the servers' clocks are compared.
	now func() time.Time
	// web and worker are how many processes an evening will have; 0 = as many as run or are wanted.
	web, worker int
	steps       migrations.Steps
	facts       doctor.Facts
}

// diagnose prints what is wrong with the installation and what to do. The error names the number of
// faults; it is a [config.Mistake] only if args are wrong.
func diagnose(ctx context.Context, args []string, getenv func(string) string, now func() time.Time, out io.Writer) error {
	d := doctorOf{getenv: getenv, now: now, steps: migrations.Released}
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "")
	flags.IntVar(&d.web, "web", 0, "")
	flags.IntVar(&d.worker, "worker", 0, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || d.web < 0 || d.worker < 0 {
		return config.Mistake{Err: errDoctorUsage}
	}
	if err := d.measure(ctx); err != nil {
		return err
	}
	findings := doctor.Examine(d.facts)
	faults := doctor.Faults(findings)
	if err := printFindings(out, findings, faults, *asJSON); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%d faults were found", faults)
	}
	return nil
}

func printFindings(out io.Writer, findings []doctor.Finding, faults int, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Faults   int              `json:"faults"`
			Findings []doctor.Finding `json:"findings"`
		}{faults, findings})
	}
	for _, f := range findings {
		fmt.Fprintf(out, "%-7s %s: %s\n", f.State, f.Check, f.Found)
		if f.Do != "" {
			fmt.Fprintf(out, "        do: %s\n", f.Do)
		}
	}
	_, err := fmt.Fprintf(out, "%d checks, %d faults\n", len(findings), faults)
	return err
}

// measureWithin bounds the measurements of one server.
const measureWithin = 15 * time.Second

// measure fills in the facts. A server that does not answer is a fact and no error.
func (d *doctorOf) measure(ctx context.Context) error {
	cfg, err := config.Load(d.getenv)
	valid := err == nil
	if !valid {
		d.facts.Mistakes = strings.Split(err.Error(), "\n")
	} else {
		d.facts.Settings = settingsOf(cfg)
	}
	d.facts.TransactionPool = cfg.TransactionPool()
	a := &app.App{Config: cfg, Log: slog.New(slog.DiscardHandler)}
	if _, err := config.LoadOnly(d.getenv, databaseVariables()...); err == nil {
		if a.DB, err = postgres.Open(ctx, cfg.DatabaseURL, postgres.Options{MaxConns: 4, AppName: "dropbell-doctor", Log: a.Log, TransactionPool: cfg.TransactionPool()}); err != nil {
			return err
		}
		defer a.DB.Close()
		d.database(ctx, a)
	}
	if _, err := config.LoadOnly(d.getenv, "REDIS_URL"); err == nil {
		a.Redis, err = redis.Open(cfg.RedisURL)
		if a.Shared = a.Redis; err != nil {
			return err
		}
		defer func() { _ = a.Redis.Close() }()
		d.redis(ctx, a.Redis)
	}
	d.facts.Disks = append(d.facts.Disks, room(os.TempDir(), "uploads", leastForUploads))
	if d.facts.Database == nil || d.facts.Migrations == nil || d.facts.Migrations.Has < d.facts.Migrations.Needs || !valid {
		d.facts.ForecastError = "not computed"
		return nil
	}
	a.Stores = app.NewStores(a.DB)
	d.ahead(ctx, a)
	if d.facts.Moves, err = a.Stores.Cells.Moves(ctx); err != nil {
		return err
	}
	return d.cells(ctx, a)
}

// cells measures the further cells.
func (d *doctorOf) cells(ctx context.Context, a *app.App) error {
	copying, err := a.Stores.Cells.Copying(ctx)
	if err != nil {
		return err
	}
	if err := a.Stores.Cells.Named(ctx, max(1, len(a.Config.Cells))); err != nil {
		d.facts.Cells = append(d.facts.Cells, doctor.Cell{Name: "that CELLS lacks", Error: err.Error()})
	}
	for n := 1; n < len(a.Config.Cells); n++ {
		one := doctor.Cell{Name: a.Config.Cells[n].Name, Number: n}
		if err := d.cell(ctx, a.Config.Cells[n].URL, &one); err != nil {
			one.Error = err.Error()
		}
		for _, c := range copying {
			if c.Number == n {
				one.Due = c.Due
			}
		}
		d.facts.Cells = append(d.facts.Cells, one)
	}
	return nil
}

// cell measures the database of a further cell, and returns why it cannot serve.
func (d *doctorOf) cell(ctx context.Context, url string, c *doctor.Cell) error {
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	db, err := readyDatabase(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := workdb.NewCheckups(db).Database(ctx, d.now)
	if err != nil {
		return err
	}
	c.Database = &found
	d.facts.Disks = append(d.facts.Disks, dataDisk(url, found, "postgresql of cell "+c.Name))
	stores := app.NewStores(db)
	if c.Moves, err = stores.Cells.Moves(ctx); err != nil {
		return err
	}
	h, err := stores.Cells.Held(ctx)
	switch {
	case err != nil:
		return err
	case int(h.Number) != c.Number:
		return fmt.Errorf("the database is cell %d and not cell %d", h.Number, c.Number)
	case slices.Contains(h.Removed, h.Number):
		return cell.ErrRemoved
	case !h.Joined:
		return errors.New("it does not have its copies of home's rows yet; a worker with the role house makes them")
	}
	return nil
}

func settingsOf(c config.Config) *doctor.Settings {
	return &doctor.Settings{EndUsers: c.JWTSecret != "" || c.JWKSURL != "", Issuer: c.JWTIssuer != "" && c.JWTAud != "", HTTPS: strings.HasPrefix(c.PublicURL, "https://"), Links: c.LinkSecret != "",
		SecretsSealed: len(c.EventsKeys) > 0 && len(c.ProvidersKeys) > 0 && len(c.SecondFactorKeys) > 0, Mail: c.SMTPURL != "", MailRequiresTLS: c.SMTPTLS == "required"}
}

// database measures PostgreSQL, its standby and its migrations.
func (d *doctorOf) database(ctx context.Context, a *app.App) {
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	found, err := workdb.NewCheckups(a.DB).Database(ctx, d.now)
	if err != nil {
		d.facts.DatabaseError = err.Error()
		return
	}
	d.facts.Database = &found
	d.facts.Disks = append(d.facts.Disks, dataDisk(a.Config.DatabaseURL, found, "postgresql"))
	var m doctor.Migrations
	if m.Has, err = a.DB.SchemaVersion(ctx); err != nil {
		d.facts.DatabaseError = err.Error()
		return
	}
	if m.Needs, err = d.steps.Latest(); err == nil {
		m.Newest, err = d.steps.Newest()
	}
	if err == nil {
		d.facts.Migrations = &m
	}
	d.replica(ctx, a)
}

// dataDisk measures the disk of the database at the address, which holds names.
func dataDisk(url string, found doctor.Database, holds string) doctor.Disk {
	disk := doctor.Disk{Path: found.DataDirectory, Holds: holds, Error: "not on this machine"}
	if isLocal(databaseHost(url)) && found.DataDirectory != "" {
		disk = room(found.DataDirectory, holds, 0)
	} else if found.DataDirectory == "" {
		disk.Path, disk.Error = "data_directory", "not visible to this role"
	}
	disk.Needed = neededOnDisk(found, 0)
	return disk
}

func (d *doctorOf) replica(ctx context.Context, a *app.App) {
	if a.Config.ReplicaURL == "" {
		return
	}
	d.facts.ReplicaConfigured, d.facts.ReplicaMaxLag = true, a.Config.ReplicaMaxLag
	replica, err := postgres.OpenReplica(ctx, a.DB, a.Config.ReplicaURL, a.Config.ReplicaMaxLag, postgres.Options{MaxConns: 4, AppName: "dropbell-doctor", Log: a.Log, TransactionPool: a.Config.TransactionPool()})
	if err != nil {
		d.facts.ReplicaError = err.Error()
		return
	}
	defer replica.Close()
	replica.Look(ctx)
	state := replica.State()
	if d.facts.ReplicaLag = state.Lag; !state.CaughtUp && !state.Usable {
		d.facts.ReplicaError = state.Reason
	}
}

// redis measures each primary of Redis.
func (d *doctorOf) redis(ctx context.Context, client goredis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	found, err := redis.Examine(ctx, client, d.now)
	if err != nil {
		d.facts.RedisError = redis.Trouble(err)
		return
	}
	d.facts.Redis = found
	for _, r := range found {
		if r.Config["appendonly"] != "yes" {
			continue
		}
		disk := doctor.Disk{Path: r.Config["dir"], Holds: "redis", Error: "not on this machine"}
		if host, _, err := net.SplitHostPort(r.Address); err == nil && isLocal(host) && disk.Path != "" {
			disk = room(disk.Path, "redis", 0)
		}
		disk.Needed = 2 * r.Used // a rewrite of the log needs as much again
		d.facts.Disks = append(d.facts.Disks, disk)
	}
}

// ahead compares what is due with what there is: processes, connections, and the rates of channels.
func (d *doctorOf) ahead(ctx context.Context, a *app.App) {
	ctx, cancel := context.WithTimeout(ctx, 2*measureWithin)
	defer cancel()
	if err := d.processes(ctx, a); err != nil {
		d.facts.ForecastError = err.Error()
		return
	}
	channels, err := a.Forecaster().Forecast(ctx, 24*time.Hour)
	if err != nil {
		d.facts.ForecastError = err.Error()
		return
	}
	providers, err := a.Stores.Providers.All(ctx)
	if err != nil {
		d.facts.ForecastError = err.Error()
		return
	}
	environment, messages := app.Configured(a.Config), int64(0)
	for _, c := range channels {
		one := doctor.Channel{Name: c.Channel.String(), PerSecond: c.Rate.PerSecond, Source: string(c.Rate.Source), Missed: c.Missed, Needed: c.Needed, Sender: sends(providers, c.Channel, environment)}
		if c.Channel == delivery.App {
			one.Source = string(forecast.Measured) // the app has no provider whose rate could be tried
		}
		for _, j := range c.Jobs {
			one.Messages += j.Messages
		}
		messages += one.Messages
		d.facts.Forecast = append(d.facts.Forecast, one)
	}
	for i := range d.facts.Disks {
		if d.facts.Disks[i].Holds == "postgresql" {
			d.facts.Disks[i].Needed = neededOnDisk(*d.facts.Database, messages)
		}
	}
}

// sends reports whether the environment or an enabled provider sends on the channel.
func sends(providers []provider.Provider, c delivery.Channel, environment delivery.ChannelSet) bool {
	for _, p := range providers {
		if p.Channel == c && p.Enabled && p.DeletedAt == nil {
			return true
		}
	}
	return environment.Has(c)
}

func (d *doctorOf) processes(ctx context.Context, a *app.App) (err error) {
	p := doctor.Processes{Conns: a.Config.DBConns}
	store := workdb.NewProcesses(a.DB)
	if p.Web, err = store.Running(ctx, "web"); err != nil {
		return err
	}
	if p.Worker, err = store.Running(ctx, "worker"); err != nil {
		return err
	}
	wanted, err := a.Capacities().Capacity(ctx, forecast.Process{WebCores: 1, WorkerCores: 1, PerReservation: 1})
	if err != nil {
		return err
	}
	p.WantWeb, p.WantWorker = max(wanted.Web, d.web), max(wanted.Worker, d.worker)
	for _, l := range wanted.Loads {
		p.Why = append(p.Why, l.Text())
	}
	d.facts.Processes = &p
	return nil
}

// The bytes that an evening may add, from the table "memory and disk" of docs/scale.md: for each
// message a reservation and, at worst, a failed delivery.
const bytesPerMessage = 84 + 250

// leastForUploads is the room for uploads of staff, which pass through the temporary folder.
const leastForUploads = 1 << 30

// neededOnDisk is the log at its greatest, with as much again for what is archived late, and the
// rows of the messages.
func neededOnDisk(d doctor.Database, messages int64) int64 {
	mebibytes, _ := strconv.ParseInt(d.Settings["max_wal_size"], 10, 64)
	return 2*mebibytes<<20 + messages*bytesPerMessage
}

// databaseHost returns the host of an address of PostgreSQL; empty = there are several.
func databaseHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return cmp.Or(u.Query().Get("host"), u.Hostname())
}

// isLocal reports whether the host is this machine: a socket or a loopback address.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || ip != nil && ip.IsLoopback()
}
