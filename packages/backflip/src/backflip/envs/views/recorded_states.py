"""What the views of simulated robots share: their poses are recorded states."""

import numpy as np
from jaxtyping import Float, Shaped


class RecordedStates:
    """A view whose poses are the simulator's positions and velocities."""

    def draws(self, scene: Shaped[np.ndarray, "..."]) -> bool:
        """Return whether states were recorded."""
        return scene.size > 0

    def poses(
        self,
        obs: Float[np.ndarray, "n ..."],
        next_obs: Float[np.ndarray, "n ..."],
        scene: Float[np.ndarray, "K S"],
    ) -> Float[np.ndarray, "K S"]:
        """Return the recorded states; the state after the last env step is not recorded."""
        del obs, next_obs
        return scene.astype(np.float64)
