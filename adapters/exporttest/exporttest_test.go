package exporttest_test

import (
	"testing"

	"dropbell/adapters/exporttest"
)

func TestMemory(t *testing.T) {
	m := &exporttest.Memory{}
	exporttest.Files(t, m, m.Read)
}
