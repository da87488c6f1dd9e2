package localstack

import (
	"context"
	"fmt"
	"io"
	"os/exec"
)

// A Place is a temporary folder on disk for a server that this package does not start, together
// with the account that the server runs as. PostgreSQL refuses to run as root.
type Place struct {
	Data    string // folder of the account
	Log     string // path of a file that does not exist yet
	account *account
	release func()
}

// NewPlace makes a place that is named like the server. The place is removed by [Place.Release]
// or when this process ends.
func NewPlace(server string) (*Place, error) {
	h, err := temporaryHome(Options{Durable: true}, server)
	if err != nil {
		return nil, err
	}
	p := &Place{Data: h.data, Log: h.log, release: h.release}
	p.account, err = serverAccount(p.Data)
	if err == nil {
		err = p.account.own(p.Data)
	}
	if err != nil {
		p.Release()
		return nil, fmt.Errorf("make a place for %s: %w", server, err)
	}
	return p, nil
}

// Command prepares a program to run as the place's account.
func (p *Place) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return p.account.command(ctx, nil, program, args...)
}

// Release removes the place.
func (p *Place) Release() { p.release() }

// PostgresFolder returns the folder of PostgreSQL's programs, installing them when it may.
func PostgresFolder(ctx context.Context, log io.Writer) (string, error) {
	p, err := findPostgres(ctx, log, 0)
	return p.path, err
}

// AptInstall installs Debian's packages for the whole machine.
func AptInstall(ctx context.Context, log io.Writer, packages ...string) error {
	return thisMachine().aptInstall(ctx, log, packages...)
}
