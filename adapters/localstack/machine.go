package localstack

import (
	"os"
	"os/exec"
	"runtime"
)

// machine has the properties that decide how a missing program can be installed.
type machine struct {
	platform string // as npm names it: linux-x64, darwin-arm64
	root     bool
	sudo     bool // without a password
	apt      bool
	npm      bool
}

func thisMachine() machine {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	m := machine{
		platform: runtime.GOOS + "-" + arch,
		root:     os.Geteuid() == 0,
		apt:      has("apt-get") && has("dpkg"),
		npm:      has("npm"),
	}
	m.sudo = !m.root && has("sudo") && exec.Command("sudo", "-n", "true").Run() == nil
	return m
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// way is one manner of getting a program.
type way string

const (
	byFinding   way = "already installed"
	byApt       way = "apt"
	byUnpacking way = "unpacked apt packages"
	byNPM       way = "npm"
	byStandIn   way = "stand-in"
)

// mayUseApt reports whether the system's own packages may be installed.
func (m machine) mayUseApt() bool { return m.apt && (m.root || m.sudo) }

// postgresWays are the ways to PostgreSQL on m, best first.
func postgresWays(m machine) []way {
	ways := []way{byFinding}
	if m.mayUseApt() {
		ways = append(ways, byApt)
	}
	if _, pinned := postgresTarballs[m.platform]; pinned && m.npm {
		ways = append(ways, byNPM)
	}
	return ways
}

// redisWays are the ways to get Redis on m, best first. Tests need a real Redis, so the stand-in
// is used only if standIn allows it.
func redisWays(m machine, standIn bool) []way {
	ways := []way{byFinding}
	switch {
	case m.mayUseApt():
		ways = append(ways, byApt)
	case m.apt:
		ways = append(ways, byUnpacking)
	}
	if standIn {
		ways = append(ways, byStandIn)
	}
	return ways
}

// systemWays are the ways to get programs that only the system's packages contain, best first.
func systemWays(m machine) []way {
	if m.mayUseApt() {
		return []way{byFinding, byApt}
	}
	return []way{byFinding}
}
