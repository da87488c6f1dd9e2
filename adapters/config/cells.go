package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// A Cell is one of the databases of the installation, with the name that the console and metrics show.
type Cell struct{ Name, URL string }

// cellStart begins an entry of CELLS. Addresses of databases may have commas.
var cellStart = regexp.MustCompile(`(?:^|,)\s*([a-z][a-z0-9-]{0,19})=`)

// mostCells is how many cells there may be: ids of one table are apart by it.
const mostCells = 64

// cells reads NAME=postgres://…,NAME=postgres://….
func cells(c *Config, v string) error {
	c.Cells = nil
	if v == "" {
		return nil
	}
	starts := cellStart.FindAllStringSubmatchIndex(v, -1)
	if len(starts) == 0 || starts[0][0] != 0 {
		return errors.New("must be names with addresses, separated by commas: a=" + databaseForm + ",b=" + databaseForm)
	}
	seen := map[string]bool{}
	for i, at := range starts {
		end := len(v)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		one := Cell{Name: v[at[2]:at[3]], URL: strings.TrimSpace(v[at[1]:end])}
		if err := database(func(*Config) *string { return new(string) })(c, one.URL); err != nil {
			return fmt.Errorf("has an address, of cell %d, that %w", i, err)
		}
		if seen[one.Name] || seen[one.URL] {
			return errors.New("must name each cell and each address once")
		}
		seen[one.Name], seen[one.URL] = true, true
		c.Cells = append(c.Cells, one)
	}
	if len(c.Cells) > mostCells {
		return fmt.Errorf("must be at most %d cells", mostCells)
	}
	return nil
}

// homeURL returns the address of home that CELLS names, for an environment without DATABASE_URL.
func homeURL(v string) string {
	var c Config
	if cells(&c, strings.TrimSpace(v)) != nil || len(c.Cells) == 0 {
		return ""
	}
	return c.Cells[0].URL
}

// cellsTogether returns what CELLS does not go together with.
func (c Config) cellsTogether() (wrong []error) {
	if len(c.Cells) == 0 {
		return nil
	}
	if c.Cells[0].URL != c.DatabaseURL {
		wrong = append(wrong, errors.New("CELLS must begin with the database of DATABASE_URL, which is home; or leave DATABASE_URL out"))
	}
	if len(c.Cells) == 1 {
		return wrong
	}
	if c.TransactionPool() {
		wrong = append(wrong, errors.New("CELLS with several cells needs DATABASE_POOL_MODE=session: each address must lead to the server itself, or to a pool in session mode"))
	}
	if strings.Contains(c.RedisURL, ",") {
		wrong = append(wrong, errors.New("CELLS with several cells needs one Redis, not a cluster: each cell has a numbered database of it"))
	}
	return wrong
}

// Several reports whether the installation has several cells.
func (c Config) Several() bool { return len(c.Cells) > 1 }

// CellName is the name of the cell that the configuration is for; empty = there is one cell.
func (c Config) CellName() string {
	if !c.Several() {
		return ""
	}
	return c.Cells[c.Cell].Name
}

// CellNames are the names of all cells; nil = there is one cell.
func (c Config) CellNames() (names []string) {
	for _, one := range c.Cells {
		names = append(names, one.Name)
	}
	if len(names) == 1 {
		return nil
	}
	return names
}

// OfCell returns the configuration of one cell's program. Its queues, streams and locks are in a
// numbered database of Redis of its own; limits stay in the database of home, SharedRedisURL. The
// standby for reports and the first admin and key are home's.
func (c Config) OfCell(n int) Config {
	c.Cell, c.DatabaseURL, c.SharedRedisURL = n, c.Cells[n].URL, c.RedisURL
	c.MaxInFlight = max(1, c.InFlight()/len(c.Cells))
	if n > 0 {
		c.RedisURL = redisDatabase(c.RedisURL, n)
		c.ReplicaURL, c.SessionURL, c.AdminEmail, c.AdminPassword, c.AdminAPIKey = "", "", "", "", ""
	}
	return c
}

// redisDatabase returns the address of the n-th database behind the one that address names.
func redisDatabase(address string, n int) string {
	o, err := goredis.ParseURL(address)
	u, bad := url.Parse(address)
	if err := cmp.Or(err, bad); err != nil {
		return address // config has checked it
	}
	q := u.Query()
	q.Del("db")
	u.Path, u.RawQuery = "/"+strconv.Itoa(o.DB+n), q.Encode()
	return u.String()
}
