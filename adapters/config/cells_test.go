package config_test

import (
	"strings"
	"testing"

	"dropbell/adapters/config"
)

// TestCells: each cell has its database of Redis, and home's address may be left out elsewhere.
func TestCells(t *testing.T) {
	env := map[string]string{"CELLS": "a=postgres://u:p@one,two/x, b=postgres://three/x?sslmode=disable,c=postgres://four/x", "REDIS_URL": "redis://cache:6379/2"}
	load := func() (config.Config, error) { return config.Load(func(name string) string { return env[name] }) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if !c.Several() || c.DatabaseURL != "postgres://u:p@one,two/x" || strings.Join(c.CellNames(), " ") != "a b c" {
		t.Errorf("%+v", c.Cells)
	}
	home, third := c.OfCell(0), c.OfCell(2)
	if home.RedisURL != "redis://cache:6379/2" || home.CellName() != "a" || third.RedisURL != "redis://cache:6379/4" || third.SharedRedisURL != home.RedisURL || third.DatabaseURL != "postgres://four/x" || third.CellName() != "c" {
		t.Errorf("%s %s, %s %s", home.RedisURL, home.CellName(), third.RedisURL, third.CellName())
	}
	for name, value := range map[string]string{"REDIS_URL": "redis://one:6379,two:6379", "DATABASE_POOL_MODE": "transaction"} {
		before := env[name]
		env[name] = value
		if _, err := load(); err == nil || !strings.Contains(err.Error(), "CELLS with several cells needs") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		env[name] = before
	}
	env["CELLS"] = "a=postgres://one/x"
	if c, err = load(); err != nil || c.Several() || c.CellName() != "" || c.CellNames() != nil {
		t.Errorf("one cell: %v %v", c.CellNames(), err)
	}
}
