//go:build !linux

package confine

import (
	"context"
	"os"
	"time"
)

// Spawn starts nothing here: the command runs in this process.
func Spawn(context.Context, []string, string, time.Duration) (End, bool) { return End{}, false }

// Limit does nothing here.
func Limit(Limits) {}

// NoteCrash does nothing here.
func NoteCrash(string) *os.File { return os.Stderr }

// Supported is the level that this system gives: none.
func Supported() Level { return Level{} }

// Enter takes nothing away here.
func Enter(Policy) Level { return Level{} }
