package doctor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of clocks. Beyond badClock a drop behind the claim gate opens noticeably at another time
// than its page says, and leases of workers become short.
const (
	advisedClock = 250 * time.Millisecond
	badClock     = 2 * time.Second
)

// The oldest supported versions.
const (
	oldestPostgreSQL = 15_00_00
	oldestRedis      = "6.2"
)

// A Clock is a server's clock as it was measured from this machine.
type Clock struct {
	// Ahead is how far the server's clock is ahead of this machine's; Within is the greatest error
	// of the measurement, half its round trip.
	Ahead, Within time.Duration
}

func (c Clock) finding(check string) Finding {
	off := max(c.Ahead.Abs()-c.Within, 0)
	state := OK
	switch {
	case off > badClock:
		state = Fault
	case off > advisedClock:
		state = Advice
	}
	return finding(check, state, "run NTP (chrony) on both machines; openings are judged by PostgreSQL's clock, and behind the claim gate by that of Redis",
		"%s %s this machine, ± %s", c.Ahead.Abs().Round(time.Millisecond), map[bool]string{true: "behind", false: "ahead of"}[c.Ahead < 0], c.Within.Round(time.Millisecond))
}

// A Database is PostgreSQL's state.
type Database struct {
	// Version is server_version_num, such as 170006; Name is server_version.
	Version int
	Name    string
	Clock   Clock
	// Standby says that the server is in recovery.
	Standby bool
	// Settings are rows of pg_settings in their base unit.
	Settings map[string]string
	// Synchronous is the number of standbys whose commits are waited for.
	Synchronous int
	// Size is the size of the database in bytes.
	Size int64
	// DataDirectory is empty if the role may not know it.
	DataDirectory string
	// OldestSnapshot is the age of the oldest transaction that keeps versions of rows.
	OldestSnapshot time.Duration
}

func database(f Facts) (list []Finding) {
	d := f.Database
	if d == nil {
		if f.DatabaseError == "" {
			return nil
		}
		return []Finding{finding("postgresql", Fault, "start PostgreSQL, or correct DATABASE_URL", "%s", f.DatabaseError)}
	}
	list = append(list, finding("postgresql", when(d.Version < oldestPostgreSQL, Fault), "upgrade PostgreSQL to 15 or later", "version %s", d.Name),
		finding("postgresql.role", when(d.Standby, Fault), "name the primary in DATABASE_URL, or both servers with target_session_attrs=read-write", "%s", map[bool]string{true: "a standby, which takes no writes", false: "a primary"}[d.Standby]),
		d.Clock.finding("clock.postgresql"))
	set := func(name string, state State, good func(string) bool, do string) {
		value, known := d.Settings[name]
		switch {
		case !known:
			list = append(list, finding("postgresql."+name, Unknown, "grant the role pg_read_all_settings, or look with a superuser", "not visible to this role"))
		default:
			list = append(list, finding("postgresql."+name, when(!good(value), state), do, "%s", cmp.Or(value, "empty")))
		}
	}
	on := func(v string) bool { return v == "on" }
	least := func(n int64) func(string) bool {
		return func(v string) bool { m, err := strconv.ParseInt(v, 10, 64); return err == nil && m >= n }
	}
	set("fsync", Fault, on, "alter system set fsync = on; select pg_reload_conf(); without it a power cut destroys the database")
	set("full_page_writes", Fault, on, "alter system set full_page_writes = on; select pg_reload_conf()")
	set("synchronous_commit", Fault, func(v string) bool { return v != "off" }, "alter system set synchronous_commit = on; select pg_reload_conf(); off loses acknowledged reservations")
	set("autovacuum", Fault, on, "alter system set autovacuum = on; select pg_reload_conf()")
	set("wal_level", Advice, func(v string) bool { return v != "minimal" }, "wal_level = replica with an archive, or only the last dump can be restored")
	set("archive_mode", Advice, func(v string) bool { return v != "off" }, "turn on WAL archiving, or only the last dump can be restored (unless another tool streams the log)")
	set("max_wal_size", Advice, least(8<<10), "max_wal_size = 8GB; small: frequent checkpoints in the rush")
	set("min_wal_size", Advice, least(2<<10), "min_wal_size = 2GB; small: commits wait while log files are created")
	set("checkpoint_timeout", Advice, least(15*60), "checkpoint_timeout = 15min")
	set("statement_timeout", Advice, func(v string) bool { return v == "0" || least(60_000)(v) }, "unset statement_timeout for this role, or use at least 60 s: cutting a slot would be cut off")
	set("lock_timeout", Advice, func(v string) bool { return v == "0" }, "unset lock_timeout for this role: staff and workers would see failures")
	list = append(list, finding("postgresql.standbys", when(d.Synchronous == 0, Advice), "set synchronous_standby_names, or a failover loses what had not reached the standby", "%d synchronous", d.Synchronous),
		finding("postgresql.snapshots", when(d.OldestSnapshot > time.Minute, Advice), "let it end before the rush: claims search among the versions of rows that it keeps (pg_stat_activity, backend_xmin)", "the oldest is %s old", d.OldestSnapshot.Round(time.Second)))
	if !f.ReplicaConfigured {
		return list
	}
	if f.ReplicaError != "" {
		return append(list, finding("postgresql.replica", Fault, "start the standby of DATABASE_REPLICA_URL, or take the variable away; reports burden the primary", "%s", f.ReplicaError))
	}
	return append(list, finding("postgresql.replica", when(f.ReplicaLag > f.ReplicaMaxLag, Advice), "look at pg_stat_replication on the primary", "%s behind", f.ReplicaLag.Round(time.Millisecond)))
}

// Redis is the state of one server of Redis.
type Redis struct {
	Address, Version string
	Clock            Clock
	// Config are the parameters that CONFIG GET returned. Where the command is forbidden they are
	// empty, but for maxmemory-policy and appendonly, which INFO has too.
	Config map[string]string
	// Used, Limit (maxmemory) and Machine are bytes; Limit 0 = none.
	Used, Limit, Machine int64
	// WriteFailed says that Redis could not write its log or snapshot.
	WriteFailed bool
	Replicas    int
}

func redis(f Facts) (list []Finding) {
	if f.Redis == nil {
		if f.RedisError == "" {
			return nil
		}
		return []Finding{finding("redis", Fault, "start Redis, or correct REDIS_URL", "%s", f.RedisError)}
	}
	for _, r := range f.Redis {
		list = append(list, r.findings(len(f.Redis) > 1)...)
	}
	return list
}

func (r Redis) findings(several bool) (list []Finding) {
	name := func(check string) string {
		if several {
			return check + "[" + r.Address + "]"
		}
		return check
	}
	list = append(list, finding(name("redis"), when(older(r.Version, oldestRedis), Fault), "upgrade Redis to 6.2 or later", "version %s", r.Version), r.Clock.finding(name("clock.redis")))
	set := func(parameter string, state State, good func(string) bool, do string) {
		value, known := r.Config[parameter]
		if !known {
			list = append(list, finding(name("redis."+parameter), Unknown, "ask who runs Redis: CONFIG GET is forbidden to this user", "not visible"))
			return
		}
		list = append(list, finding(name("redis."+parameter), when(!good(value), state), do, "%s", cmp.Or(value, "empty")))
	}
	set("maxmemory-policy", Fault, func(v string) bool { return v == "noeviction" }, "config set maxmemory-policy noeviction, and the same in redis.conf: any other policy drops timers and queued work without trace")
	set("appendonly", Fault, func(v string) bool { return v == "yes" }, "config set appendonly yes, and the same in redis.conf: without it Redis is empty after a restart, and accepted claims behind the gate are lost")
	switch r.Config["appendfsync"] {
	case "no":
		set("appendfsync", Fault, func(string) bool { return false }, "config set appendfsync always, and the same in redis.conf: the machine's death loses accepted claims of half a minute")
	default:
		set("appendfsync", Advice, func(v string) bool { return v == "always" }, "config set appendfsync always where drops are behind the claim gate; everysec loses up to 2 s of accepted claims when the machine dies")
	}
	list = append(list, finding(name("redis.writes"), when(r.WriteFailed, Fault), "look at the log of Redis: it cannot write its append-only file or snapshot", "%s", map[bool]string{true: "the last write failed", false: "the last write succeeded"}[r.WriteFailed]))
	limit, of := r.Limit, "maxmemory"
	if limit == 0 {
		limit, of = r.Machine, "the machine"
	}
	state := OK
	if limit > 0 && 2*r.Used > limit {
		state = Advice
	}
	if limit > 0 && float64(r.Used) > 0.9*float64(limit) {
		state = Fault
	}
	list = append(list, finding(name("redis.memory"), state, "raise maxmemory to twice what is in use: when it is full, writes fail", "%s used of %s (%s)", size(r.Used), size(limit), of))
	if r.Replicas > 0 {
		set("min-replicas-to-write", Advice, func(v string) bool { return v != "0" }, "config set min-replicas-to-write 1, or a failover loses what had not been replicated")
	}
	return list
}

// older compares the numbers of two versions.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		m, _ := strconv.Atoi(a[i])
		n, _ := strconv.Atoi(b[i])
		if m != n {
			return m < n
		}
	}
	return false
}

// Migrations are the steps of the schema.
type Migrations struct {
	// Has is the step of the database. Needs is the newest step that these programs need, Newest the
	// newest that they know, contracting ones included.
	Has, Needs, Newest int64
}

func migrations(f Facts) []Finding {
	m := f.Migrations
	switch {
	case m == nil:
		return nil
	case m.Has < m.Needs:
		return []Finding{finding("migrations", Fault, "run dropbell migrate; until then neither web nor worker is ready", "the database is at %d, these programs need %d", m.Has, m.Needs)}
	case m.Has > m.Newest:
		return []Finding{finding("migrations", Advice, "use the programs of the newer version, or go on with the previous version as the upgrade allows", "the database is at %d, these programs know %d", m.Has, m.Newest)}
	case m.Has < m.Newest:
		return []Finding{finding("migrations", Advice, "once no program of the previous version runs: dropbell migrate contract", "the database is at %d; up to %d something is left for the previous version", m.Has, m.Newest)}
	}
	return []Finding{finding("migrations", OK, "", "the database is at %d, as these programs need", m.Has)}
}

// Move is a move of a shop to or from another installation that is not complete.
type Move struct {
	Shop     int64
	Arriving bool // at this installation
	// Emptied is whether the shop's rows have left, and some have not arrived.
	Emptied bool
	Since   time.Time
}

func moves(f Facts) (list []Finding) {
	for _, m := range f.Moves {
		where, state, do := "to another installation", Advice, fmt.Sprintf("complete it with worker move %d, or take it back with worker move %d undo", m.Shop, m.Shop)
		switch {
		case m.Emptied:
			state, do = Fault, fmt.Sprintf("complete it with worker move %d: planned notices and reminders of the shop are sent by no installation until then", m.Shop)
		case m.Arriving:
			where, do = "to this installation", fmt.Sprintf("complete it with worker move %d where the shop comes from, or take it back there with worker move %d undo", m.Shop, m.Shop)
		}
		list = append(list, finding("move", state, do, "the move of shop %d %s began at %s and is not complete", m.Shop, where, m.Since.UTC().Format(time.RFC3339)))
	}
	return list
}

// Cell is one database of several that the installation has.
type Cell struct {
	Name   string
	Number int
	// Error is why the cell cannot serve, empty if it can.
	Error string
	// Due are the changes of home's rows that are still to be copied to the cell.
	Due int64
	// Database is nil if it could not be measured.
	Database *Database
	Moves    []Move
}

// findings are what home's database is examined for, about the cell's.
func (c Cell) findings(processes *Processes) []Finding {
	f := Facts{Database: c.Database, Moves: c.Moves}
	list := slices.Concat(database(f), moves(f))
	if processes != nil && c.Database != nil {
		list = append(list, processes.connections(*c.Database))
	}
	for i := range list {
		list[i].Check += " of cell " + c.Name
	}
	return list
}

// muchDue is more changes than an import leaves behind for a minute.
const muchDue = 100_000

func cells(f Facts) (list []Finding) {
	for _, c := range f.Cells {
		switch {
		case c.Error != "":
			list = append(list, finding("cell", Fault, "start its database, or see docs/cells.md; calls for the shops of the other cells are answered meanwhile", "cell %s: %s", c.Name, c.Error))
		case c.Due > muchDue:
			list = append(list, finding("cell", Advice, "see that a worker with the role house runs: contacts and erasures reach the cell late", "cell %s: %d changes of contacts and settings are still to be copied", c.Name, c.Due))
		default:
			list = append(list, finding("cell", OK, "", "cell %s answers, and %d changes are still to be copied", c.Name, c.Due))
		}
		list = append(list, c.findings(f.Processes)...)
	}
	return list
}

// Processes are the programs that run or are wanted.
type Processes struct {
	// Web and Worker run now; WantWeb and WantWorker are wanted for the next loads.
	Web, Worker, WantWeb, WantWorker int
	// Why are the reasons for the wanted ones.
	Why []string
	// Conns is DATABASE_MAX_CONNS.
	Conns int
}

// spareConns are connections for migrations, operators and monitoring.
const spareConns = 10

func connections(f Facts) (list []Finding) {
	p := f.Processes
	if p == nil || f.Database == nil {
		return nil
	}
	reasons := "no opening, reminder or campaign within 15 minutes"
	if len(p.Why) > 0 {
		reasons = p.Why[0]
	}
	for _, n := range []struct {
		name       string
		have, want int
	}{{"web", p.Web, p.WantWeb}, {"worker", p.Worker, p.WantWorker}} {
		list = append(list, finding("processes."+n.name, when(n.have < n.want, Advice), fmt.Sprintf("start %d more of %s", n.want-n.have, n.name), "%d run, %d are wanted: %s", n.have, n.want, reasons))
	}
	if f.TransactionPool {
		return append(list, finding("connections", Unknown, "compare the pool size of the pooler with max_connections of PostgreSQL", "a pooler is in between"))
	}
	return append(list, p.connections(*f.Database))
}

// connections compares the connections of all processes with those of a database.
func (p Processes) connections(d Database) Finding {
	number := func(name string) int { n, _ := strconv.Atoi(d.Settings[name]); return n }
	limit := number("max_connections") - number("superuser_reserved_connections") - number("reserved_connections")
	needed := (max(p.Web, p.WantWeb)+max(p.Worker, p.WantWorker))*p.Conns + spareConns
	return finding("connections", when(needed > limit, Fault), fmt.Sprintf("max_connections = %d (a restart of PostgreSQL), or a smaller DATABASE_MAX_CONNS, or a pooler", int(math.Ceil(float64(needed)*1.25/10))*10),
		"%d processes × %d + %d = %d of %d", max(p.Web, p.WantWeb)+max(p.Worker, p.WantWorker), p.Conns, spareConns, needed, limit)
}

// A Channel is the forecast of one channel for the next day.
type Channel struct {
	Name      string
	PerSecond float64
	Source    string // quota, configured, measured or assumed
	Messages  int64
	Missed    int64
	Needed    float64 // the rate at which nothing would be missed
	Sender    bool    // whether the channel has a sender
}

func forecast(f Facts) (list []Finding) {
	if f.ForecastError != "" {
		return []Finding{finding("forecast", Unknown, "correct the faults above first", "%s", f.ForecastError)}
	}
	for _, c := range f.Forecast {
		check := "forecast." + c.Name
		switch {
		case c.Messages == 0:
		case !c.Sender:
			list = append(list, finding(check, Fault, "configure a sender of the channel, in the environment or on the page Providers", "%d reminders are due within a day, and no provider can send them", c.Messages))
		case c.Missed > 0:
			list = append(list, finding(check, Fault, fmt.Sprintf("raise the provider's quota or the channel's rate to %.0f a second, or add a provider", math.Ceil(c.Needed)),
				"%d of %d reminders within a day would miss their opening at %.0f a second (%s)", c.Missed, c.Messages, c.PerSecond, c.Source))
		case c.Source == "assumed":
			list = append(list, finding(check, Advice, "send a test drop: the rate of this channel was never measured", "%d reminders within a day at %.0f a second (assumed)", c.Messages, c.PerSecond))
		default:
			list = append(list, finding(check, OK, "", "%d reminders within a day at %.0f a second (%s)", c.Messages, c.PerSecond, c.Source))
		}
	}
	return list
}
