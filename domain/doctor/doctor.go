// Package doctor examines an installation before an evening: settings, clocks, durability, versions,
// migrations, connections, providers' rates against the forecast, and room. It judges facts that
// were measured before and says what an operator should do.
package doctor

import (
	"fmt"
	"slices"
	"time"
)

// State is the result of one check.
type State string

// The states. A fault endangers an evening; advice does not. Unknown means that the doctor could not
// measure, so that the operator must look.
const (
	OK      State = "ok"
	Advice  State = "advice"
	Unknown State = "unknown"
	Fault   State = "fault"
)

// A Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Found string `json:"found"`
	// Do is what an operator should do; empty if State is OK.
	Do string `json:"do,omitempty"`
}

// Facts are what was measured. A nil field was not measured, because an earlier check failed.
type Facts struct {
	// Mistakes are the errors of the environment, one per mistake.
	Mistakes []string
	Settings *Settings
	// Database and Redis are nil if the server does not answer; the errors say why.
	Database          *Database
	DatabaseError     string
	Redis             []Redis
	RedisError        string
	Migrations        *Migrations
	Moves             []Move
	Cells             []Cell // further ones than home
	Processes         *Processes
	Forecast          []Channel
	ForecastError     string
	Disks             []Disk
	TransactionPool   bool
	ReplicaError      string
	ReplicaLag        time.Duration
	ReplicaConfigured bool
	ReplicaMaxLag     time.Duration
}

// Settings are settings of the environment that are valid, but perhaps not meant.
type Settings struct {
	EndUsers, Issuer, HTTPS, Links, SecretsSealed, MailRequiresTLS, Mail bool
}

// Examine returns the findings in the order in which an operator should read them.
func Examine(f Facts) []Finding {
	return slices.Concat(settings(f), database(f), redis(f), migrations(f), moves(f), cells(f), connections(f), forecast(f), disks(f))
}

// Faults returns how many findings are faults.
func Faults(list []Finding) (n int) {
	for _, f := range list {
		if f.State == Fault {
			n++
		}
	}
	return n
}

func finding(check string, state State, do, format string, args ...any) Finding {
	if state == OK {
		do = ""
	}
	return Finding{check, state, fmt.Sprintf(format, args...), do}
}

// when returns the state if the condition holds, and OK otherwise.
func when(condition bool, s State) State {
	if condition {
		return s
	}
	return OK
}

func settings(f Facts) (list []Finding) {
	for _, m := range f.Mistakes {
		list = append(list, finding("settings", Fault, "correct the variable; dropbell --help describes each", "%s", m))
	}
	if s := f.Settings; s != nil {
		list = append(list, finding("settings", OK, "", "every variable has a valid form"))
		for _, c := range []struct {
			check     string
			good      bool
			found, do string
		}{
			{"settings.end_users", s.EndUsers, "end users cannot sign in", "set AUTH_JWT_SECRET or AUTH_JWKS_URL, unless only service keys call the API"},
			{"settings.issuer", s.Issuer || !s.EndUsers, "tokens for other services are accepted too", "set AUTH_JWT_ISSUER and AUTH_JWT_AUDIENCE"},
			{"settings.public_url", s.HTTPS, "PUBLIC_URL is not https", "use an address with https, so that cookies are Secure and links are safe"},
			{"settings.links", s.Links, "mails have no link to turn them off", "set LINK_SECRET (openssl rand -base64 32)"},
			{"settings.sealed", s.SecretsSealed, "secrets of webhooks, providers or authenticator apps are stored unencrypted", "set EVENTS_KEY, PROVIDERS_KEY and SECOND_FACTOR_KEY"},
			{"settings.mail_tls", s.MailRequiresTLS || !s.Mail, "mails may be sent without TLS", "set SMTP_TLS=required"},
		} {
			if !c.good {
				list = append(list, finding(c.check, Advice, c.do, "%s", c.found))
			}
		}
	}
	return list
}

// A Disk is the room on one file system.
type Disk struct {
	Path string
	// Free and Size are bytes. Error says why they are unknown.
	Free, Size int64
	Error      string
	// Holds says what is stored there; Needed are the bytes that an evening may take.
	Holds  string
	Needed int64
}

// leastFree is the part of a file system that should be free.
const leastFree = 0.1

func disks(f Facts) (list []Finding) {
	for _, d := range f.Disks {
		check, do := "disk."+d.Holds, "make room or enlarge the disk: with a full disk PostgreSQL stops, and Redis refuses writes"
		switch {
		case d.Error != "":
			list = append(list, finding(check, Unknown, fmt.Sprintf("look on the machine that holds it: at least %s and a tenth of the disk should be free", size(d.Needed)), "%s: %s", d.Path, d.Error))
		case d.Free < d.Needed || float64(d.Free) < leastFree*float64(d.Size):
			list = append(list, finding(check, Fault, do, "%s: %s of %s free, %s may be needed", d.Path, size(d.Free), size(d.Size), size(d.Needed)))
		default:
			list = append(list, finding(check, OK, "", "%s: %s of %s free", d.Path, size(d.Free), size(d.Size)))
		}
	}
	return list
}

// size writes bytes with a unit of 1024.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
