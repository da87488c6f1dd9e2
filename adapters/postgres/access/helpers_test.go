package access_test

import (
	"dropbell/adapters/postgres/pgtest"
	"testing"
)

// world is the fixture with what the tests here add to it.
type world struct{ *pgtest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{pgtest.New(t)}
}
