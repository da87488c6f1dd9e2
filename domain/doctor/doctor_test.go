package doctor_test

import (
	"maps"
	"testing"
	"time"

	"dropbell/domain/doctor"
)

// healthy are the facts of an installation without a finding that is not OK.
func healthy() doctor.Facts {
	return doctor.Facts{
		Settings: &doctor.Settings{EndUsers: true, Issuer: true, HTTPS: true, Links: true, SecretsSealed: true, MailRequiresTLS: true, Mail: true},
		Database: &doctor.Database{Version: 170006, Name: "17.6", Synchronous: 1, Clock: doctor.Clock{Ahead: 3 * time.Millisecond, Within: time.Millisecond},
			Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on", "wal_level": "replica", "archive_mode": "on",
				"max_wal_size": "8192", "min_wal_size": "2048", "checkpoint_timeout": "900", "statement_timeout": "0", "lock_timeout": "0",
				"max_connections": "200", "superuser_reserved_connections": "3", "reserved_connections": "0"}},
		Redis: []doctor.Redis{{Address: "127.0.0.1:6379", Version: "7.4.5", Used: 1 << 20, Limit: 1 << 28,
			Config: map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"}}},
		Migrations: &doctor.Migrations{Has: 150, Needs: 150, Newest: 150},
		Processes:  &doctor.Processes{Web: 3, Worker: 2, WantWeb: 3, WantWorker: 2, Why: []string{"drop 42 opens at 20:00, 310,000 expected"}, Conns: 16},
		Forecast:   []doctor.Channel{{Name: "email", PerSecond: 300, Source: "measured", Messages: 1000, Sender: true}, {Name: "sms"}},
		Disks:      []doctor.Disk{{Path: "/data", Holds: "postgresql", Free: 100 << 30, Size: 200 << 30, Needed: 16 << 30}},
	}
}

// findings returns the state of each check that is not OK. Each says what to do.
func findings(t *testing.T, f doctor.Facts) map[string]doctor.State {
	t.Helper()
	states := map[string]doctor.State{}
	for _, one := range doctor.Examine(f) {
		if one.Found == "" || (one.Do == "") != (one.State == doctor.OK) {
			t.Errorf("%+v", one)
		}
		if one.State != doctor.OK {
			states[one.Check] = one.State
		}
	}
	return states
}

// TestExamine: each fact that is not as it should be is found, and nothing else.
func TestExamine(t *testing.T) {
	set := func(name, value string) func(*doctor.Facts) {
		return func(f *doctor.Facts) { f.Database.Settings[name] = value }
	}
	configure := func(name, value string) func(*doctor.Facts) {
		return func(f *doctor.Facts) { f.Redis[0].Config[name] = value }
	}
	for name, c := range map[string]struct {
		change func(*doctor.Facts)
		want   map[string]doctor.State
	}{
		"healthy":          {func(*doctor.Facts) {}, nil},
		"mistakes":         {func(f *doctor.Facts) { f.Settings, f.Mistakes = nil, []string{"REDIS_URL is required"} }, map[string]doctor.State{"settings": doctor.Fault}},
		"no end users":     {func(f *doctor.Facts) { f.Settings.EndUsers, f.Settings.Issuer = false, false }, map[string]doctor.State{"settings.end_users": doctor.Advice}},
		"any issuer":       {func(f *doctor.Facts) { f.Settings.Issuer = false }, map[string]doctor.State{"settings.issuer": doctor.Advice}},
		"http":             {func(f *doctor.Facts) { f.Settings.HTTPS = false }, map[string]doctor.State{"settings.public_url": doctor.Advice}},
		"mail in clear":    {func(f *doctor.Facts) { f.Settings.MailRequiresTLS = false }, map[string]doctor.State{"settings.mail_tls": doctor.Advice}},
		"no mail":          {func(f *doctor.Facts) { f.Settings.MailRequiresTLS, f.Settings.Mail = false, false }, nil},
		"database away":    {func(f *doctor.Facts) { f.Database, f.DatabaseError = nil, "away" }, map[string]doctor.State{"postgresql": doctor.Fault}},
		"old database":     {func(f *doctor.Facts) { f.Database.Version = 149999 }, map[string]doctor.State{"postgresql": doctor.Fault}},
		"standby":          {func(f *doctor.Facts) { f.Database.Standby = true }, map[string]doctor.State{"postgresql.role": doctor.Fault}},
		"fsync":            {set("fsync", "off"), map[string]doctor.State{"postgresql.fsync": doctor.Fault}},
		"full_page_writes": {set("full_page_writes", "off"), map[string]doctor.State{"postgresql.full_page_writes": doctor.Fault}},
		"async commits":    {set("synchronous_commit", "off"), map[string]doctor.State{"postgresql.synchronous_commit": doctor.Fault}},
		"remote commits":   {set("synchronous_commit", "remote_apply"), nil},
		"small log":        {set("max_wal_size", "1024"), map[string]doctor.State{"postgresql.max_wal_size": doctor.Advice}},
		"short statements": {set("statement_timeout", "5000"), map[string]doctor.State{"postgresql.statement_timeout": doctor.Advice}},
		"long statements":  {set("statement_timeout", "60000"), nil},
		"hidden setting":   {func(f *doctor.Facts) { delete(f.Database.Settings, "archive_mode") }, map[string]doctor.State{"postgresql.archive_mode": doctor.Unknown}},
		"no standby":       {func(f *doctor.Facts) { f.Database.Synchronous = 0 }, map[string]doctor.State{"postgresql.standbys": doctor.Advice}},
		"old snapshot":     {func(f *doctor.Facts) { f.Database.OldestSnapshot = time.Hour }, map[string]doctor.State{"postgresql.snapshots": doctor.Advice}},
		"clock ahead":      {func(f *doctor.Facts) { f.Database.Clock.Ahead = 3 * time.Second }, map[string]doctor.State{"clock.postgresql": doctor.Fault}},
		"clock behind":     {func(f *doctor.Facts) { f.Redis[0].Clock.Ahead = -300 * time.Millisecond }, map[string]doctor.State{"clock.redis": doctor.Advice}},
		"slow measurement": {func(f *doctor.Facts) { f.Redis[0].Clock = doctor.Clock{Ahead: time.Second, Within: time.Second} }, nil},
		"replica away":     {func(f *doctor.Facts) { f.ReplicaConfigured, f.ReplicaError = true, "away" }, map[string]doctor.State{"postgresql.replica": doctor.Fault}},
		"replica behind": {func(f *doctor.Facts) {
			f.ReplicaConfigured, f.ReplicaMaxLag, f.ReplicaLag = true, time.Second, time.Minute
		},
			map[string]doctor.State{"postgresql.replica": doctor.Advice}},
		"redis away":       {func(f *doctor.Facts) { f.Redis, f.RedisError = nil, "away" }, map[string]doctor.State{"redis": doctor.Fault}},
		"old redis":        {func(f *doctor.Facts) { f.Redis[0].Version = "6.0.16" }, map[string]doctor.State{"redis": doctor.Fault}},
		"newer redis":      {func(f *doctor.Facts) { f.Redis[0].Version = "10.0" }, nil},
		"eviction":         {configure("maxmemory-policy", "allkeys-lru"), map[string]doctor.State{"redis.maxmemory-policy": doctor.Fault}},
		"no log":           {configure("appendonly", "no"), map[string]doctor.State{"redis.appendonly": doctor.Fault}},
		"no fsync":         {configure("appendfsync", "no"), map[string]doctor.State{"redis.appendfsync": doctor.Fault}},
		"fsync a second":   {configure("appendfsync", "everysec"), map[string]doctor.State{"redis.appendfsync": doctor.Advice}},
		"config forbidden": {func(f *doctor.Facts) { delete(f.Redis[0].Config, "appendfsync") }, map[string]doctor.State{"redis.appendfsync": doctor.Unknown}},
		"full disk":        {func(f *doctor.Facts) { f.Redis[0].WriteFailed = true }, map[string]doctor.State{"redis.writes": doctor.Fault}},
		"much memory":      {func(f *doctor.Facts) { f.Redis[0].Used = 1<<27 + 1 }, map[string]doctor.State{"redis.memory": doctor.Advice}},
		"no memory":        {func(f *doctor.Facts) { f.Redis[0].Used = 1 << 28 }, map[string]doctor.State{"redis.memory": doctor.Fault}},
		"no maxmemory":     {func(f *doctor.Facts) { f.Redis[0].Limit, f.Redis[0].Machine = 0, 1<<20+1 }, map[string]doctor.State{"redis.memory": doctor.Fault}},
		"replicas":         {func(f *doctor.Facts) { f.Redis[0].Replicas, f.Redis[0].Config["min-replicas-to-write"] = 1, "0" }, map[string]doctor.State{"redis.min-replicas-to-write": doctor.Advice}},
		"a cluster": {func(f *doctor.Facts) {
			other := f.Redis[0]
			other.Address, other.Config = "127.0.0.1:6380", maps.Clone(other.Config)
			other.Config["appendonly"] = "no"
			f.Redis = append(f.Redis, other)
		}, map[string]doctor.State{"redis.appendonly[127.0.0.1:6380]": doctor.Fault}},
		"not migrated":   {func(f *doctor.Facts) { f.Migrations.Has = 149 }, map[string]doctor.State{"migrations": doctor.Fault}},
		"not contracted": {func(f *doctor.Facts) { f.Migrations.Newest = 151 }, map[string]doctor.State{"migrations": doctor.Advice}},
		"a move":         {func(f *doctor.Facts) { f.Moves = []doctor.Move{{Shop: 10}} }, map[string]doctor.State{"move": doctor.Advice}},
		"a shop arrives": {func(f *doctor.Facts) { f.Moves = []doctor.Move{{Shop: 10, Arriving: true}} }, map[string]doctor.State{"move": doctor.Advice}},
		"an unsafe cell": {func(f *doctor.Facts) {
			d := *f.Database
			d.Settings = maps.Clone(d.Settings)
			d.Settings["fsync"] = "off"
			d.Settings["max_connections"] = "20"
			f.Cells = []doctor.Cell{{Name: "b", Number: 1, Database: &d}}
		}, map[string]doctor.State{"postgresql.fsync of cell b": doctor.Fault, "connections of cell b": doctor.Fault}},
		"half a move":      {func(f *doctor.Facts) { f.Moves = []doctor.Move{{Shop: 10, Emptied: true}} }, map[string]doctor.State{"move": doctor.Fault}},
		"newer schema":     {func(f *doctor.Facts) { f.Migrations.Has = 160 }, map[string]doctor.State{"migrations": doctor.Advice}},
		"few processes":    {func(f *doctor.Facts) { f.Processes.Web = 2 }, map[string]doctor.State{"processes.web": doctor.Advice}},
		"connections":      {func(f *doctor.Facts) { f.Processes.WantWorker, f.Processes.Worker = 10, 10 }, map[string]doctor.State{"connections": doctor.Fault}},
		"just enough":      {set("max_connections", "93"), nil},
		"one too few":      {set("max_connections", "92"), map[string]doctor.State{"connections": doctor.Fault}},
		"a pooler":         {func(f *doctor.Facts) { f.TransactionPool = true }, map[string]doctor.State{"connections": doctor.Unknown}},
		"missed":           {func(f *doctor.Facts) { f.Forecast[0].Missed, f.Forecast[0].Needed = 10, 1000 }, map[string]doctor.State{"forecast.email": doctor.Fault}},
		"never measured":   {func(f *doctor.Facts) { f.Forecast[0].Source = "assumed" }, map[string]doctor.State{"forecast.email": doctor.Advice}},
		"no sender":        {func(f *doctor.Facts) { f.Forecast[1].Messages = 5 }, map[string]doctor.State{"forecast.sms": doctor.Fault}},
		"no forecast":      {func(f *doctor.Facts) { f.ForecastError = "not computed" }, map[string]doctor.State{"forecast": doctor.Unknown}},
		"a tenth free":     {func(f *doctor.Facts) { f.Disks[0].Free = 19 << 30 }, map[string]doctor.State{"disk.postgresql": doctor.Fault}},
		"too little room":  {func(f *doctor.Facts) { f.Disks[0].Needed = 101 << 30 }, map[string]doctor.State{"disk.postgresql": doctor.Fault}},
		"a disk elsewhere": {func(f *doctor.Facts) { f.Disks[0].Error = "not on this machine" }, map[string]doctor.State{"disk.postgresql": doctor.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			c.change(&f)
			if got := findings(t, f); !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			faults := 0
			for _, s := range c.want {
				if s == doctor.Fault {
					faults++
				}
			}
			if got := doctor.Faults(doctor.Examine(f)); got != faults {
				t.Errorf("%d faults, want %d", got, faults)
			}
		})
	}
}
