package config

import (
	"io"
	"log/slog"
	"os"
)

// Logger returns the log of a program: one JSON object per line, from level LOG_LEVEL up.
// Durations are texts such as 1.5s.
func (c Config) Logger(program string, out io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // Load has checked it
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: readable})).
		With("program", program, "pid", os.Getpid())
}

// readable replaces durations, which would be bare nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
